package inside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/internal/pause"
)

const (
	runtimeSocket = "/run/containerd/containerd.sock"
	socketPoll    = 20 * time.Millisecond
	restartPause  = time.Second
	// stopPatience is how long programs may take to terminate gracefully.
	stopPatience = 3 * time.Second
)

// services runs the programs of the node.
type services struct {
	reaper  *reaper
	log     logr.Logger
	running sync.WaitGroup
}

// newServices returns services that reap their processes beyond ctx, so that
// the caller can wait for them.
func newServices(ctx context.Context, log logr.Logger) *services {
	return &services{reaper: newReaper(context.WithoutCancel(ctx)), log: log}
}

// run starts all programs, in the order of their dependencies, and keeps them
// running until ctx ends.
func (s *services) run(ctx context.Context, settings *Settings) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() { // what runs already ends with the others when one cannot be started
		cancel()
		s.running.Wait()
	}()
	s.keep(ctx, "containerd", "--config", own+"/containerd.toml")
	if err := s.awaitRuntime(ctx); err != nil {
		return err
	}
	if err := s.importImages(ctx); err != nil {
		return err
	}
	s.keep(ctx, "node-policies", "--kubeconfig", own+"/node-policies.kubeconfig", "--runtime", "unix://"+runtimeSocket)
	s.keep(ctx, "kubelet", "--config", own+"/kubelet.yaml", "--kubeconfig", own+"/kubelet.kubeconfig",
		"--hostname-override", settings.Name, "--node-ip", settings.Address.String())
	s.keep(ctx, "kube-proxy", "--config", own+"/kube-proxy.yaml")
	<-ctx.Done()
	return nil
}

// keep runs a program and restarts it when it exits.
func (s *services) keep(ctx context.Context, name string, args ...string) {
	s.running.Go(func() {
		for ctx.Err() == nil {
			err := s.once(ctx, name, args...)
			if ctx.Err() != nil {
				return
			}
			s.log.Info("A program of the node exited, restarting it", "program", name, "reason", fmt.Sprint(err))
			pause.For(ctx, restartPause)
		}
	})
}

// once runs a program until it exits, which is soon after the end of ctx.
func (s *services) once(ctx context.Context, name string, args ...string) (err error) {
	log, err := os.OpenFile(logFile(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	p, err := s.reaper.start(log, append([]string{filepath.Join(programs, name)}, args...)...)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.result()
	case <-ctx.Done():
	}
	if err := unix.Kill(p.pid, unix.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.result()
	case <-time.After(stopPatience):
		return errors.New("still running")
	}
}

func logFile(name string) string { return filepath.Join("/var/log", name+".log") }

func (s *services) awaitRuntime(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, socketPoll, true, func(ctx context.Context) (bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", runtimeSocket)
		if err != nil {
			return false, nil //nolint:nilerr // it does not exist yet
		}
		return true, conn.Close()
	})
}

// importImages imports the images into containerd, which is cheap for those
// that it has.
func (s *services) importImages(ctx context.Context) error {
	var archives []string
	for _, dir := range []string{filepath.Join(programs, "images"), images} {
		found, err := filepath.Glob(filepath.Join(dir, "*.tar"))
		if err != nil {
			return err
		}
		archives = append(archives, found...)
	}
	for _, archive := range archives {
		if err := s.once(ctx, "ctr", "--address", runtimeSocket, "--namespace", "k8s.io", "images", "import", archive); err != nil {
			return fmt.Errorf("import %s: %w; see %s", filepath.Base(archive), err, logFile("ctr"))
		}
	}
	return nil
}
