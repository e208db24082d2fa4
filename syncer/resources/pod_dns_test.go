package resources

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPodAsksTheTenantsDNS(t *testing.T) {
	ndots := func(n string) []corev1.PodDNSConfigOption {
		return []corev1.PodDNSConfigOption{{Name: "ndots", Value: new(n)}}
	}
	searches := []string{"default.svc.my.domain", "svc.my.domain", "my.domain"}
	asks := func(c corev1.PodDNSConfig) corev1.PodSpec {
		return corev1.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: &c}
	}
	tests := map[string]struct{ tenant, want corev1.PodSpec }{
		"by default": {
			corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirst},
			asks(corev1.PodDNSConfig{Nameservers: []string{"10.104.16.10"}, Searches: searches, Options: ndots("5")}),
		},
		"with more of its own": {
			corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirst, DNSConfig: &corev1.PodDNSConfig{
				Nameservers: []string{"192.0.2.1", "10.104.16.10"}, Searches: []string{"example.com", "my.domain"},
				Options: append(ndots("2"), corev1.PodDNSConfigOption{Name: "edns0"}),
			}},
			asks(corev1.PodDNSConfig{
				Nameservers: []string{"10.104.16.10", "192.0.2.1"}, Searches: append(searches, "example.com"),
				Options: append(ndots("2"), corev1.PodDNSConfigOption{Name: "edns0"}),
			}),
		},
		"with more than a copy may have": {
			corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirst, DNSConfig: &corev1.PodDNSConfig{
				Nameservers: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, Searches: numbered(32),
			}},
			asks(corev1.PodDNSConfig{
				Nameservers: []string{"10.104.16.10", "192.0.2.1", "192.0.2.2"}, Searches: append(searches, numbered(29)...), Options: ndots("5"),
			}),
		},
		"in the host network, if it requests it": {
			corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirstWithHostNet, HostNetwork: true},
			func() corev1.PodSpec {
				s := asks(corev1.PodDNSConfig{Nameservers: []string{"10.104.16.10"}, Searches: searches, Options: ndots("5")})
				s.HostNetwork = true
				return s
			}(),
		},
		"not in the network of its node": {
			corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirst, HostNetwork: true},
			corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirst, HostNetwork: true},
		},
		"not if it wants its node's": {corev1.PodSpec{DNSPolicy: corev1.DNSDefault}, corev1.PodSpec{DNSPolicy: corev1.DNSDefault}},
		"not with policy None": {
			asks(corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}}), asks(corev1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}}),
		},
	}
	v := addressed()
	v.Tenant.ClusterDomain = "my.domain"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.tenant.DeepCopy()
			translateDNS(v, got)
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("not where the tenant has no addresses", func(t *testing.T) {
		got := &corev1.PodSpec{DNSPolicy: corev1.DNSClusterFirst}
		translateDNS(view, got)
		if got.DNSPolicy != corev1.DNSClusterFirst || got.DNSConfig != nil {
			t.Errorf("got %s with %v", got.DNSPolicy, got.DNSConfig)
		}
	})
}

// numbered returns that many search domains.
func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%d.example.com", i)
	}
	return out
}
