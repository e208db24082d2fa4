package hosted

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// placements are the stores of control planes that the cache may not show yet,
// and the VirtualClusters for which none had room.
type placements struct {
	sync.Mutex // guards all below

	recent  map[types.UID]string // stores by the UID of the VirtualCluster
	waiting map[types.UID]types.NamespacedName
}

// add records the store of a control plane. The mutex is held.
func (p *placements) add(vc types.UID, store string) {
	if p.recent == nil {
		p.recent = map[types.UID]string{}
	}
	p.recent[vc] = store
	delete(p.waiting, vc)
}

// wait records a VirtualCluster for which no store has room. The mutex is held.
func (p *placements) wait(vc *tenancyv1alpha1.VirtualCluster) {
	if p.waiting == nil {
		p.waiting = map[types.UID]types.NamespacedName{}
	}
	p.waiting[vc.UID] = client.ObjectKeyFromObject(vc)
}

// waitForStore records a VirtualCluster whose data the store that it asks for does
// not take.
func (p *placements) waitForStore(vc *tenancyv1alpha1.VirtualCluster) {
	p.Lock()
	defer p.Unlock()
	p.wait(vc)
}

// requests returns the VirtualClusters for which no store had room.
func (p *placements) requests() []reconcile.Request {
	p.Lock()
	defer p.Unlock()
	all := make([]reconcile.Request, 0, len(p.waiting))
	for _, vc := range p.waiting {
		all = append(all, reconcile.Request{NamespacedName: vc})
	}
	return all
}

// forget drops a control plane that was not made, or exists no more.
func (p *placements) forget(vc types.UID) {
	p.Lock()
	defer p.Unlock()
	delete(p.recent, vc)
	delete(p.waiting, vc)
}

// count returns the number of control planes by store; one that is moved counts in
// both. It forgets those that the cache shows. The mutex is held.
func (p *placements) count(cached []tenancyv1alpha1.HostedControlPlane) map[string]int64 {
	numbers := map[string]int64{}
	for i := range cached {
		numbers[cached[i].Spec.Store]++
		if at := cached[i].DataStore(); at != cached[i].Spec.Store {
			numbers[at]++
		}
		if vc := cached[i].Spec.VirtualCluster.UID; p.recent[vc] == cached[i].Spec.Store {
			delete(p.recent, vc)
		}
	}
	for _, store := range p.recent {
		numbers[store]++
	}
	return numbers
}
