package shareddns

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func named(name string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// TestIsShared: only the Service that vc-manager ensures, at the tenant's
// address, leads to the shared DNS.
func TestIsShared(t *testing.T) {
	address := netip.MustParseAddr("10.104.16.10")
	svc := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.Cluster: "key"}}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: address.String(), Selector: map[string]string{names.Label(names.DNS): names.Shared},
		}}
		change(s)
		return s
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Service)
		want   bool
	}{
		"ours":             {func(*corev1.Service) {}, true},
		"another tenant's": {func(s *corev1.Service) { s.Annotations[names.Cluster] = "other" }, false},
		"no copy":          {func(s *corev1.Service) { s.Annotations = nil }, false},
		"for pods":         {func(s *corev1.Service) { s.Spec.Selector = map[string]string{"k8s-app": "kube-dns"} }, false},
		"no selector":      {func(s *corev1.Service) { s.Spec.Selector = nil }, false},
		"from outside":     {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }, false},
		"tenant's label":   {func(s *corev1.Service) { s.Spec.Selector = map[string]string{names.DNS: names.Shared} }, false},
		"elsewhere":        {func(s *corev1.Service) { s.Spec.ClusterIP = "10.104.16.11" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isShared(svc(tt.change), "key", address); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if isShared(svc(func(*corev1.Service) {}), "key", netip.Addr{}) {
		t.Error("a tenant without an address is served")
	}
}

func TestSliceIsUpToDate(t *testing.T) {
	want := desiredSlice(named("red"), names.DNSService, FirstPort, discoveryv1.AddressTypeIPv4, []string{"10.244.0.2"})
	if !upToDate(want.DeepCopy(), want) {
		t.Error("a slice is not up to date with itself")
	}
	domain := named("red")
	domain.Spec.ClusterDomain = "my.domain"
	for name, other := range map[string]*discoveryv1.EndpointSlice{
		"port":    desiredSlice(named("red"), names.DNSService, FirstPort+1, discoveryv1.AddressTypeIPv4, []string{"10.244.0.2"}),
		"address": desiredSlice(named("red"), names.DNSService, FirstPort, discoveryv1.AddressTypeIPv4, []string{"10.244.0.3"}),
		"domain":  desiredSlice(domain, names.DNSService, FirstPort, discoveryv1.AddressTypeIPv4, []string{"10.244.0.2"}),
		"service": desiredSlice(named("red"), "kube-dns-lab", FirstPort, discoveryv1.AddressTypeIPv4, []string{"10.244.0.2"}),
	} {
		if upToDate(other, want) {
			t.Errorf("another %s is up to date", name)
		}
	}
}

func TestReadyAddresses(t *testing.T) {
	endpoint := func(address string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	all := []discoveryv1.EndpointSlice{
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{endpoint("10.0.0.3", new(true)), endpoint("10.0.0.2", new(false))}},
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{endpoint("10.0.0.1", nil), endpoint("10.0.0.3", nil)}},
		{AddressType: discoveryv1.AddressTypeIPv6, Endpoints: []discoveryv1.Endpoint{endpoint("fd00::1", nil)}},
	}
	for address, want := range map[string][]string{"10.104.0.10": {"10.0.0.1", "10.0.0.3"}, "fd01::a": {"fd00::1"}} {
		if got := readyAddresses(all, addresses.SliceType(netip.MustParseAddr(address))); !slices.Equal(got, want) {
			t.Errorf("for %s, got %v, want %v", address, got, want)
		}
	}
}
