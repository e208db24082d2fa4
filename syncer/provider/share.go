package provider

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Share says which tenants are served, where several processes share them.
type Share interface {
	// Keeps says whether a tenant that is served stays so.
	Keeps(vc types.NamespacedName) bool
	// Begins says whether one that is not served is to be.
	Begins(vc types.NamespacedName) bool
}

// visit is a look at a VirtualCluster. There is one of each at a time.
type visit struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// visit begins a look at a VirtualCluster, and says whether its tenant is to be served. The context ends early if that changes.
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

// lockedMine says whether a tenant is to be served. Without a share, all are.
func (p *Provider) lockedMine(vc types.NamespacedName) bool {
	switch {
	case p.share == nil:
		return true
	case p.tenants[vc] != nil:
		return p.share.Keeps(vc)
	}
	return p.share.Begins(vc)
}

// Serve has the tenants served from now on that a share says, and no others. It returns when nothing is in flight any more for those
// that it does not keep; that is an error if ctx ends before. Others are begun later.
func (p *Provider) Serve(ctx context.Context, share Share) error {
	for _, e := range p.letGo(share) {
		select {
		case <-e.done:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the end of the work for VirtualCluster %s: %w", e.vc, ctx.Err())
		}
	}
	select {
	case p.shared <- struct{}{}:
	default: // all are about to be looked at anyway
	}
	return nil
}

// ending is work for a VirtualCluster that comes to its end.
type ending struct {
	vc   types.NamespacedName
	done <-chan struct{}
}

// letGo begins to let go of the tenants that a share does not keep.
func (p *Provider) letGo(share Share) []ending {
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

// lookAtAll has every VirtualCluster looked at again.
func (p *Provider) lookAtAll(ctx context.Context) error {
	all := &tenancyv1alpha1.VirtualClusterList{}
	if err := p.super.List(ctx, all); err != nil {
		return fmt.Errorf("listing the VirtualClusters: %w", err)
	}
	for i := range all.Items {
		p.changed(ctx, &all.Items[i])
	}
	return nil
}
