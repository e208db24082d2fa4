package feed_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
)

// wire is a connection to an etcd that can be cut.
type wire struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// startWire starts a wire to an etcd, and returns a client that uses it.
func startWire(t *testing.T, etcd *clientv3.Client) (*wire, *clientv3.Client) {
	t.Helper()
	g := NewWithT(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "w"))
	g.Expect(err).NotTo(HaveOccurred())
	w := &wire{listener: listener, to: strings.TrimPrefix(etcd.Endpoints()[0], "unix://")}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serve(conn) })
		}
	})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + listener.Addr().String()}, Logger: zap.NewNop()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = client.Close()
		_ = listener.Close()
		w.set(true)
		serving.Wait()
	})
	return w, client
}

func (w *wire) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	to, err := net.Dial("unix", w.to)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		return
	}
	w.conns = append(w.conns, conn, to)
	w.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(conn, to)
		_ = conn.Close()
	})
	_, _ = io.Copy(to, conn)
	_ = to.Close()
	back.Wait()
}

// set cuts the wire, or repairs it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// TestOutage: a feed of an etcd that cannot be reached for a while continues
// without a gap, also if etcd has compacted the changes meanwhile.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, compacted := range map[string]bool{"changes are kept": false, "changes are compacted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			_, direct := etcdtest.Start(t)
			w, client := startWire(t, direct)
			put(g, direct, "red/pods/a/1", "old")
			put(g, direct, "red/pods/a/2", "old")
			source, err := feed.New(t.Context(), feed.Remote(client))
			g.Expect(err).NotTo(HaveOccurred())
			run(t, source)
			s, woken := subscribe(g, source, "red")
			to := newReceived()
			g.Expect(s.Receive(t.Context(), to)).To(Succeed())

			w.set(true)
			put(g, direct, "red/pods/a/1", "new")
			remove(g, direct, "red/pods/a/2")
			last := put(g, direct, "red/pods/a/3", "new")
			if compacted {
				_, err := direct.Compact(t.Context(), last)
				g.Expect(err).NotTo(HaveOccurred())
			}
			failing, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err = source.Count(failing, "red", "pods")
			g.Expect(err).To(HaveOccurred(), "the outage")
			w.set(false)
			g.Eventually(woken, soon).Should(Receive())
			g.Eventually(func(g Gomega) {
				g.Expect(s.Receive(t.Context(), to)).To(Succeed())
				g.Expect(to.copy()).To(Equal(map[string]string{"a/1": "new", "a/3": "new"}))
			}, soon).Should(Succeed())

			put(g, direct, "red/pods/a/4", "later")
			g.Eventually(func(g Gomega) {
				g.Expect(s.Receive(t.Context(), to)).To(Succeed())
				g.Expect(to.copy()).To(HaveKeyWithValue("a/4", "later"))
			}, soon).Should(Succeed())
		})
	}
}
