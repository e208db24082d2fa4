package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LaggingAPIServer is a second apiserver of a super cluster, for custom
// resources: upstream's program, on the store of the first one. It can be made
// to lag, as one does that was suspended or has lost its watch.
type LaggingAPIServer struct {
	Client  client.WithWatch
	process *exec.Cmd
	store   *laggingStore
}

// StartLaggingAPIServer starts a program that serves custom resources, on the
// store of a super cluster. Its files are in a directory of its own.
func StartLaggingAPIServer(ctx context.Context, s *SuperCluster, program, dir string, output io.Writer) (*LaggingAPIServer, error) {
	store, err := newLaggingStore(filepath.Join(s.Dir, "etcd", "client.sock"))
	if err != nil {
		return nil, err
	}
	address, err := FreeAddress(ctx)
	if err != nil {
		return nil, errors.Join(err, store.close())
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.Join(err, store.close())
	}
	kubeconfig := filepath.Join(s.Dir, kubeconfigFile)
	a := &LaggingAPIServer{store: store, process: exec.CommandContext(ctx, program,
		"--etcd-servers=http://"+store.listener.Addr().String(), "--etcd-prefix=/controlplanes/super",
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+host, "--secure-port="+port, "--cert-dir="+dir)}
	a.process.Stdout, a.process.Stderr = output, output
	if err := a.process.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), store.close())
	}
	config := rest.CopyConfig(s.Config)
	config.Host = "https://" + address
	config.Insecure, config.CAData, config.CAFile, config.ServerName = true, nil, "", ""
	// It has no discovery of all groups.
	a.Client, err = client.NewWithWatch(config, client.Options{Scheme: s.Client.Scheme(), Mapper: s.Client.RESTMapper()})
	return a, err
}

// Lag withholds all changes of CRDs from the apiserver, until CatchUp.
func (a *LaggingAPIServer) Lag() { a.store.hold(true) }

// CatchUp lets the apiserver know all changes of CRDs.
func (a *LaggingAPIServer) CatchUp() { a.store.hold(false) }

// Signal sends a signal to the apiserver.
func (a *LaggingAPIServer) Signal(s syscall.Signal) error { return a.process.Process.Signal(s) }

// Stop stops the apiserver and waits for it.
func (a *LaggingAPIServer) Stop() error {
	killed := a.process.Process.Kill()
	_, waited := a.process.Process.Wait()
	if errors.Is(killed, os.ErrProcessDone) {
		killed = nil
	}
	return errors.Join(killed, waited, a.store.close())
}

// laggingStore forwards connections to an etcd. It can withhold what etcd sends
// on those by which a client reads CRDs. A client has a connection for each
// resource.
type laggingStore struct {
	socket   string
	listener net.Listener
	work     sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	held    bool
	closed  bool
	open    map[net.Conn]struct{}
}

// ofCRDs is in all requests for CRDs.
var ofCRDs = []byte("/apiextensions.k8s.io/customresourcedefinitions")

func newLaggingStore(socket string) (*laggingStore, error) {
	listener, err := listenAnywhere(context.Background())
	if err != nil {
		return nil, err
	}
	s := &laggingStore{socket: socket, listener: listener, open: map[net.Conn]struct{}{}}
	s.changed = sync.NewCond(&s.mu)
	s.work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			s.work.Go(func() { s.pass(client) })
		}
	})
	return s, nil
}

// hold withholds, or does not any more.
func (s *laggingStore) hold(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	s.changed.Broadcast()
}

// close closes all connections.
func (s *laggingStore) close() error {
	err := s.listener.Close()
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	return err
}

// add registers a connection, unless the store is closed.
func (s *laggingStore) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open[c] = struct{}{}
	}
	return !s.closed
}

// remove closes a connection.
func (s *laggingStore) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	_ = c.Close()
}

// pass forwards between a client and the etcd.
func (s *laggingStore) pass(client net.Conn) {
	defer s.remove(client)
	server, err := net.Dial("unix", s.socket)
	if err != nil || !s.add(client) || !s.add(server) {
		return
	}
	defer s.remove(server)
	var mu sync.Mutex
	readsCRDs := false
	s.work.Go(func() {
		defer s.remove(server)
		forward(server, client, func(chunk []byte) {
			mu.Lock()
			defer mu.Unlock()
			readsCRDs = readsCRDs || bytes.Contains(chunk, ofCRDs)
		})
	})
	forward(client, server, func([]byte) {
		mu.Lock()
		lags := readsCRDs
		mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		for lags && s.held && !s.closed {
			s.changed.Wait()
		}
	})
}

// forward copies from one side to the other, and calls before with each chunk.
func forward(to io.Writer, from io.Reader, before func(chunk []byte)) {
	buffer := make([]byte, maxChunk)
	for {
		n, err := from.Read(buffer)
		before(buffer[:n])
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}
