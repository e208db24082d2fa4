// Command pause holds a pod's namespaces and collects the pod's orphans, which
// come to it as process 1.
package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for sig := range signals {
		if sig != syscall.SIGCHLD {
			return
		}
		collect()
	}
}

// collect takes note of every child that has ended. Signals that came at the
// same time may have become one.
func collect() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
