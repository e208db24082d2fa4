package shareddns

import (
	"errors"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// The range of tenants' ports at vc-dns. Ports from 32768 on are those of
// connections that vc-dns opens.
const (
	FirstPort = 10_000
	LastPort  = 32_767
)

var errNoPort = errors.New("every port of the shared DNS is in use; let tenants have a DNS of their own, " +
	"with the annotation " + names.DNS + "=" + names.Dedicated + " of their namespace kube-system")

// ports are those of all tenants. The labels of the EndpointSlices store them.
type ports struct {
	mu sync.Mutex
	// owners is nil until load.
	owners   map[int32]types.NamespacedName
	assigned map[types.NamespacedName]int32
}

// load reads the stored ports once. Of two tenants with the same port, the
// second gets another.
func (p *ports) load(stored func() ([]discoveryv1.EndpointSlice, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owners != nil {
		return nil
	}
	slices, err := stored()
	if err != nil {
		return err
	}
	p.owners, p.assigned = map[int32]types.NamespacedName{}, map[types.NamespacedName]int32{}
	for i := range slices {
		port := portOf(&slices[i])
		if _, taken := p.owners[port]; port >= FirstPort && !taken {
			p.set(types.NamespacedName{Namespace: slices[i].Labels[names.VCNamespace], Name: slices[i].Labels[names.VCName]}, port)
		}
	}
	return nil
}

// assign returns the port of a tenant: the one that it has, or the lowest that
// is free.
func (p *ports) assign(tenant types.NamespacedName) (int32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port, has := p.assigned[tenant]; has {
		return port, nil
	}
	for port := int32(FirstPort); port <= LastPort; port++ {
		if _, taken := p.owners[port]; !taken {
			p.set(tenant, port)
			return port, nil
		}
	}
	return 0, errNoPort
}

func (p *ports) set(tenant types.NamespacedName, port int32) {
	p.owners[port], p.assigned[tenant] = tenant, port
}

// release frees the port of a tenant that does not use it any more.
func (p *ports) release(tenant types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port, has := p.assigned[tenant]; has {
		delete(p.owners, port)
		delete(p.assigned, tenant)
	}
}

// portOf returns the port in the label of an EndpointSlice; 0 if there is none.
func portOf(slice *discoveryv1.EndpointSlice) int32 {
	port, err := strconv.ParseUint(slice.Labels[names.DNSPort], 10, 15)
	if err != nil {
		return 0
	}
	return int32(port)
}
