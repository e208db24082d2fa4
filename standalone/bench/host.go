package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/pprof"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// The commands that a child with a host serves on the loopback interface.
const (
	runPath     = "/run"
	sleepPath   = "/sleep"
	garbagePath = "/garbage"
	profilePath = "/profile"
)

// runCommand runs control planes, and waits until all are ready.
type runCommand struct {
	Names  []string `json:"names"`
	Shared bool     `json:"shared"`
}

// sleepCommand puts control planes to sleep, and waits until they have stopped.
// A connection wakes them.
type sleepCommand struct {
	Names  []string `json:"names"`
	Shared bool     `json:"shared"` // when they wake
}

// state is the response to a command.
type state struct {
	Goroutines int `json:"goroutines"`
	// Kubeconfigs are those of the control planes that were run.
	Kubeconfigs [][]byte `json:"kubeconfigs,omitempty"`
	// Profile is a heap profile.
	Profile []byte `json:"profile,omitempty"`
}

// serveHost runs a host in this process, and serves commands until ctx ends.
func serveHost(ctx context.Context, dir string, exit func(code int)) error {
	klog.SetLogger(logr.Discard())
	klog.OsExit = hosted.ContainExit(exit)
	host, err := hosted.Start(ctx, hosted.Options{Dir: dir, UnsafeNoFsync: true, Log: logr.Discard()})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(runPath, func(w http.ResponseWriter, r *http.Request) {
		var command runCommand
		err := json.NewDecoder(r.Body).Decode(&command)
		var kubeconfigs [][]byte
		if err == nil {
			kubeconfigs, err = runPlanes(r.Context(), host, command)
		}
		respond(w, state{Kubeconfigs: kubeconfigs}, err)
	})
	mux.HandleFunc(sleepPath, func(w http.ResponseWriter, r *http.Request) {
		var command sleepCommand
		err := json.NewDecoder(r.Body).Decode(&command)
		if err == nil {
			err = sleepPlanes(r.Context(), host, command)
		}
		respond(w, state{}, err)
	})
	handleMemory(mux)
	serve, err := listen(ctx, mux)
	if err != nil {
		return err
	}
	return serve()
}

// listen opens a port for commands, and prints it. The function serves until
// ctx ends.
func listen(ctx context.Context, handler http.Handler) (serve func() error, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Println("ready", listener.Addr())
	return func() error { return server.Serve(listener) }, nil
}

// handleMemory serves the commands of a child whose memory is measured.
func handleMemory(mux *http.ServeMux) {
	mux.HandleFunc(garbagePath, func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC() // finalizers run after the first
		debug.FreeOSMemory()
		respond(w, state{}, nil)
	})
	mux.HandleFunc(profilePath, func(w http.ResponseWriter, _ *http.Request) {
		var profile bytes.Buffer
		err := pprof.WriteHeapProfile(&profile)
		respond(w, state{Profile: profile.Bytes()}, err)
	})
}

func respond(w http.ResponseWriter, result state, err error) {
	if err == nil {
		result.Goroutines = runtime.NumGoroutine()
		err = json.NewEncoder(w).Encode(result)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// runPlanes runs control planes at once, and returns their kubeconfigs when all
// are ready.
func runPlanes(ctx context.Context, host *hosted.Host, command runCommand) ([][]byte, error) {
	kubeconfigs := make([][]byte, len(command.Names))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range command.Names {
		group.Go(func() error {
			plane, err := host.Run(specOf(name, command.Shared))
			if err != nil {
				return err
			}
			select {
			case <-plane.Ready():
				kubeconfigs[i] = plane.AdminKubeconfig()
				return nil
			case <-plane.Done():
				return plane.Err()
			case <-ctx.Done():
				return fmt.Errorf("control plane %s is not ready: %w", name, context.Cause(ctx))
			}
		})
	}
	return kubeconfigs, group.Wait()
}

func specOf(name string, shared bool) hosted.Spec {
	return hosted.Spec{Name: name, Shared: shared, Network: egress.Unrestricted{}}
}

// sleepPlanes puts control planes to sleep.
func sleepPlanes(ctx context.Context, host *hosted.Host, command sleepCommand) error {
	for _, name := range command.Names {
		wake := func() { _, _ = host.Run(specOf(name, command.Shared)) } // the request that woke it shows the error
		if err := host.Sleep(ctx, name, wake); err != nil {
			return err
		}
	}
	return nil
}
