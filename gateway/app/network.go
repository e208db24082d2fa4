package app

import (
	"context"
	"errors"
	"net"
	"sync"

	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// network connects to the webhooks of converted tenants. It follows the pods of
// the super cluster from the first connection on.
type network struct {
	super  kubernetes.Interface
	policy *egress.Policy
	// needed is closed by the first connection, and known when the policy can decide.
	needed, known chan struct{}
	need          func()
}

// newNetwork makes a network with the policy of the options, which knows the pods
// already, or with one of its own.
func newNetwork(super kubernetes.Interface, options Options) (*network, error) {
	n := &network{super: super, policy: options.Egress, needed: make(chan struct{}), known: make(chan struct{})}
	n.need = sync.OnceFunc(func() { close(n.needed) })
	if n.policy != nil {
		close(n.known)
		return n, nil
	}
	var err error
	n.policy, err = egress.NewPolicy(options.TenantEgress, options.Internal)
	return n, err
}

// Start follows the pods until ctx ends, once that is needed.
func (n *network) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.known:
		return nil
	case <-n.needed:
	}
	directory, err := egress.WatchSuperCluster(ctx, n.super)
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	n.policy.Directory = directory
	close(n.known)
	return nil
}

// of returns the network of a tenant.
func (n *network) of(clusterKey string) egress.Network { return ofTenant{n, clusterKey} }

type ofTenant struct {
	*network

	key string
}

// errUnknownPods is a connection before the gateway knows who has which address.
var errUnknownPods = errors.New("the addresses of pods are not known yet")

// Dialer implements egress.Network.
func (t ofTenant) Dialer(purpose egress.Purpose) egress.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		t.need()
		select {
		case <-t.known:
		case <-ctx.Done():
			return nil, errUnknownPods
		}
		return t.policy.For(t.key).Dialer(purpose)(ctx, network, address)
	}
}
