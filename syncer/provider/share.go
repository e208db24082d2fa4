package provider

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Share decides which tenants are served, if several processes share them.
type Share interface {
	// Keeps reports whether a tenant that is served remains served.
	Keeps(vc types.NamespacedName) bool
	// Begins reports whether a tenant that is not served should be.
	Begins(vc types.NamespacedName) bool
}

// visit is a reconcile of a VirtualCluster. There is at most one of each at a
// time.
type visit struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// visit begins a reconcile of a VirtualCluster, and reports whether its tenant
// should be served. The context ends early if that changes.
func (p *Provider) visit(ctx context.Context, vc types.NamespacedName) (visiting context.Context, mine bool, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	visiting, cancel := context.WithCancel(ctx)
	v := &visit{cancel, make(chan struct{})}
	p.visits[vc] = v
	return visiting, p.lockedMine(vc), func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.visits, vc)
		close(v.done)
	}
}

// Mine reports whether the tenant of a VirtualCluster should be served, which may
// be engaged, deleted or neither.
func (p *Provider) Mine(vc types.NamespacedName) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.lockedMine(vc)
}

// lockedMine reports whether a tenant should be served. Without a share, all
// are.
func (p *Provider) lockedMine(vc types.NamespacedName) bool {
	switch {
	case p.share == nil:
		return true
	case p.tenants[vc] != nil:
		return p.share.Keeps(vc)
	}
	return p.share.Begins(vc)
}

// Serve serves the tenants of a share from now on, and no others. It returns
// when all work for other tenants has ended, or an error if ctx is done before.
// New tenants are engaged later.
func (p *Provider) Serve(ctx context.Context, share Share) error {
	for _, e := range p.release(share) {
		select {
		case <-e.done:
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of the work for VirtualCluster %s: %w", e.vc, ctx.Err())
		}
	}
	select {
	case p.shared <- struct{}{}:
	default: // all are about to be requeued anyway
	}
	return nil
}

// ending is the end of the work for a VirtualCluster.
type ending struct {
	vc   types.NamespacedName
	done <-chan struct{}
}

// release begins to disengage the tenants that a share does not keep.
func (p *Provider) release(share Share) []ending {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.share = share
	var all []ending
	for vc, v := range p.visits {
		if !share.Keeps(vc) {
			v.cancel()
			all = append(all, ending{vc, v.done})
		}
	}
	for vc := range p.tenants {
		if !share.Keeps(vc) {
			all = append(all, ending{vc, p.lockedDisengage(vc)})
		}
	}
	return all
}

// requeueAll requeues every VirtualCluster.
func (p *Provider) requeueAll(ctx context.Context) error {
	all := &tenancyv1alpha1.VirtualClusterList{}
	if err := p.super.List(ctx, all); err != nil {
		return fmt.Errorf("list VirtualClusters: %w", err)
	}
	for i := range all.Items {
		p.changed(ctx, &all.Items[i])
	}
	return nil
}
