package virtualcluster

import (
	"context"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// allotments are the parts of Service addresses that tenants were given and that
// the cache may not show yet. With a list around the cache for each new tenant,
// many tenants would take quadratic time.
type allotments struct {
	sync.Mutex // guards all below

	// recent is nil until all were listed around the cache: another manager may
	// have given parts right before this one became the leader.
	recent map[types.UID]allotment
}

type allotment struct {
	tenant client.ObjectKey
	parts  []netip.Prefix
}

// add records what a tenant was given. The mutex is held.
func (a *allotments) add(vc *tenancyv1alpha1.VirtualCluster) {
	if parts := appendRanges(nil, vc.Status.ServiceCIDR, vc.Status.SecondaryServiceCIDR); len(parts) > 0 {
		a.recent[vc.UID] = allotment{tenant: client.ObjectKeyFromObject(vc), parts: parts}
	}
}

// besides returns the parts of tenants that the cached VirtualClusters do not
// show. It forgets those that they show, and those of tenants that do not exist
// any more. The mutex is held.
func (a *allotments) besides(ctx context.Context, live client.Reader, cached []tenancyv1alpha1.VirtualCluster) ([]netip.Prefix, error) {
	if err := a.load(ctx, live); err != nil {
		return nil, err
	}
	for i := range cached {
		shown := appendRanges(nil, cached[i].Status.ServiceCIDR, cached[i].Status.SecondaryServiceCIDR)
		if len(shown) >= len(a.recent[cached[i].UID].parts) {
			delete(a.recent, cached[i].UID)
		}
	}
	parts := make([]netip.Prefix, 0, len(a.recent))
	for uid, each := range a.recent {
		current := &tenancyv1alpha1.VirtualCluster{}
		if err := live.Get(ctx, each.tenant, current); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if current.UID != uid {
			delete(a.recent, uid)
			continue
		}
		parts = append(parts, each.parts...)
	}
	return parts, nil
}

// load lists all VirtualClusters around the cache, once.
func (a *allotments) load(ctx context.Context, live client.Reader) error {
	if a.recent != nil {
		return nil
	}
	all := &tenancyv1alpha1.VirtualClusterList{}
	if err := live.List(ctx, all); err != nil {
		return err
	}
	a.recent = make(map[types.UID]allotment, len(all.Items))
	for i := range all.Items {
		a.add(&all.Items[i])
	}
	return nil
}
