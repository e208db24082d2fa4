package hosted

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// placements are the stores of control planes that the cache may not show yet.
type placements struct {
	sync.Mutex // guards all below

	recent map[types.UID]string // by the UID of the VirtualCluster
}

// add records the store of a control plane. The mutex is held.
func (p *placements) add(vc types.UID, store string) {
	if p.recent == nil {
		p.recent = map[types.UID]string{}
	}
	p.recent[vc] = store
}

// forget drops a control plane that was not made, or exists no more.
func (p *placements) forget(vc types.UID) {
	p.Lock()
	defer p.Unlock()
	delete(p.recent, vc)
}

// count returns the number of control planes by store. It forgets those that the
// cache shows. The mutex is held.
func (p *placements) count(cached []tenancyv1alpha1.HostedControlPlane) map[string]int64 {
	numbers := map[string]int64{}
	for i := range cached {
		numbers[cached[i].Spec.Store]++
		delete(p.recent, cached[i].Spec.VirtualCluster.UID)
	}
	for _, store := range p.recent {
		numbers[store]++
	}
	return numbers
}
