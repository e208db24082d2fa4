package kit

import (
	"context"
	"net"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// Balancer passes connections to endpoints in turn, as a Service does.
type Balancer struct {
	Address string

	mu        sync.Mutex
	endpoints []string
	next      int
}

// newBalancer opens the port of a service, until the end of the container of
// specs.
func newBalancer(ctx context.Context) *Balancer {
	GinkgoHelper()
	b := &Balancer{}
	b.Address = Forward(ctx, b.pick)
	return b
}

// Forward opens a port whose connections are passed on, until the end of the
// container of specs, and returns its address.
func Forward(ctx context.Context, to local.Target) string {
	GinkgoHelper()
	f, err := local.Forward(ctx, to)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(f.Stop)
	return f.Address
}

func (b *Balancer) pick(_ context.Context, conn net.Conn) (address string, passed net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.endpoints) == 0 {
		return "", conn
	}
	b.next++
	return b.endpoints[b.next%len(b.endpoints)], conn
}

// Add adds an endpoint.
func (b *Balancer) Add(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = append(b.endpoints, address)
}

// Remove removes an endpoint, whose connections continue.
func (b *Balancer) Remove(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endpoints = slices.DeleteFunc(b.endpoints, func(a string) bool { return a == address })
}
