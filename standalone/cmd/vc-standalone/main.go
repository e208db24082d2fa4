// Command vc-standalone runs VirtualCluster on one machine: super cluster,
// tenants, manager and syncer in one process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/virtualcluster/virtualcluster/standalone/app"
)

func main() {
	os.Exit(app.Main(untilSignal()))
}

// untilSignal is a context that ends with the first signal to stop. The second
// ends the process as it is.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with the process
		<-signals
		cancel()
		<-signals
		os.Exit(1)
	}()
	return ctx
}
