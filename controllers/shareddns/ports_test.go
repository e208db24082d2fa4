package shareddns

import (
	"errors"
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// loaded returns the ports of tenants that have EndpointSlices.
func loaded(t *testing.T, slices ...discoveryv1.EndpointSlice) *ports {
	t.Helper()
	p := &ports{}
	if err := p.load(func() ([]discoveryv1.EndpointSlice, error) { return slices, nil }); err != nil {
		t.Fatal(err)
	}
	return p
}

// storedFor returns the EndpointSlice of a tenant with a port.
func storedFor(tenant types.NamespacedName, port int32) discoveryv1.EndpointSlice {
	return *desiredSlice(named(tenant.Name), names.DNSService, port, discoveryv1.AddressTypeIPv4, nil)
}

func tenantNamed(name string) types.NamespacedName { return client.ObjectKeyFromObject(named(name)) }

// TestPorts: no two tenants have one port, and a tenant keeps the one that is
// stored.
func TestPorts(t *testing.T) {
	red, green, blue := tenantNamed("red"), tenantNamed("green"), tenantNamed("blue")
	p := loaded(t, storedFor(green, FirstPort), storedFor(red, FirstPort), storedFor(blue, FirstPort+2), storedFor(tenantNamed("grey"), 80))
	for _, want := range []struct {
		tenant types.NamespacedName
		port   int32
	}{
		{green, FirstPort},
		{red, FirstPort + 1}, // the stored one is green's
		{blue, FirstPort + 2},
		{red, FirstPort + 1},
		{tenantNamed("grey"), FirstPort + 3}, // the stored one is no tenant's
	} {
		if got, err := p.assign(want.tenant); got != want.port || err != nil {
			t.Errorf("%s gets %d (%v), want %d", want.tenant, got, err, want.port)
		}
	}
	p.release(red)
	p.release(red)
	if got, err := p.assign(tenantNamed("next")); got != FirstPort+1 || err != nil {
		t.Errorf("the released port is not assigned: %d (%v)", got, err)
	}
}

// TestPortsAreLoaded: without the stored ports, none is assigned.
func TestPortsAreLoaded(t *testing.T) {
	p, red := &ports{}, tenantNamed("red")
	down := errors.New("down")
	if err := p.load(func() ([]discoveryv1.EndpointSlice, error) { return nil, down }); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	for _, port := range []int32{FirstPort + 7, FirstPort + 8} { // the second is not read
		if err := p.load(func() ([]discoveryv1.EndpointSlice, error) {
			return []discoveryv1.EndpointSlice{storedFor(red, port)}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := p.assign(red); got != FirstPort+7 || err != nil {
		t.Errorf("got %d (%v)", got, err)
	}
}

func TestPortsRunOut(t *testing.T) {
	var all []discoveryv1.EndpointSlice
	for port := int32(FirstPort); port <= LastPort; port++ {
		all = append(all, storedFor(tenantNamed(fmt.Sprint(port)), port))
	}
	if port, err := loaded(t, all...).assign(tenantNamed("red")); !errors.Is(err, errNoPort) {
		t.Errorf("got port %d (%v)", port, err)
	}
}
