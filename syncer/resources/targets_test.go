package resources

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestTargets(t *testing.T) {
	v := view
	v.Tenant.Endpoint, v.Tenant.PodEndpoint = "https://198.51.100.1", "https://203.0.113.5:6443"
	v.Tenant.Policy = tenancyv1alpha1.TenantPolicy{EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24", "nonsense"}}
	tcp := func(numbers ...int32) []port {
		var ports []port
		for _, number := range numbers {
			ports = append(ports, port{corev1.ProtocolTCP, &number})
		}
		return ports
	}
	tests := map[string]struct {
		address string
		ports   []port
		want    bool
	}{
		"one of the tenant's pods, at any port":        {"10.1.0.7", nil, true},
		"another's":                                    {"10.2.0.7", tcp(80), false},
		"in a network that is allowed":                 {"192.0.2.9", nil, true},
		"as IPv4 in IPv6":                              {"::ffff:192.0.2.9", nil, false},
		"beside it":                                    {"192.0.3.9", nil, false},
		"the apiserver":                                {"198.51.100.1", tcp(443), true},
		"the apiserver, as pods reach it":              {"203.0.113.5", tcp(6443), true},
		"another port of its address":                  {"203.0.113.5", tcp(10250), false},
		"another port beside its own":                  {"203.0.113.5", tcp(6443, 10250), false},
		"the port of one at the address of the other":  {"203.0.113.5", tcp(443), false},
		"all ports of its address":                     {"203.0.113.5", nil, false},
		"any port of its address":                      {"203.0.113.5", []port{{protocol: corev1.ProtocolTCP}}, false},
		"its port of another protocol":                 {"203.0.113.5", []port{{corev1.ProtocolUDP, new(int32(6443))}}, false},
		"a port that there is not":                     {"203.0.113.5", tcp(65536 + 6443), false},
		"a name":                                       {"example.com", tcp(443), false},
		"nothing":                                      {"", tcp(443), false},
		"a network":                                    {"192.0.2.0/24", tcp(443), false},
		"the apiserver's address with leading zeros":   {"203.0.113.005", tcp(6443), false},
		"an address of the tenant's own with a suffix": {"192.0.2.9%eth0", tcp(80), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			may := targets{view: v}
			if got := may.allows(tt.address, tt.ports); got != tt.want || (may.err() == nil) != tt.want {
				t.Errorf("allowed: %t (%v), want %t", got, may.err(), tt.want)
			}
		})
	}
}

func TestTargetsThatAreNamed(t *testing.T) {
	may := targets{view: view}
	for _, address := range []string{"1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4", "5.5.5.5", "6.6.6.6", "7.7.7.7"} {
		may.allows(address, nil)
	}
	if err := may.err(); !strings.Contains(err.Error(), "5.5.5.5 and 2 more") {
		t.Errorf("the rejection is %v", err)
	}
}

// TestAddressesOfAPod checks that a shared or reusable address does not belong
// to the pod.
func TestAddressesOfAPod(t *testing.T) {
	status := corev1.PodStatus{PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}, {IP: "fd00::1"}}}
	ended := status
	ended.Phase = corev1.PodFailed
	for name, tt := range map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"a running pod":                  {corev1.Pod{Status: status}, "10.1.0.1 fd00::1"},
		"one in the network of its node": {corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true}, Status: status}, ""},
		"a completed pod":                {corev1.Pod{Status: ended}, ""},
		"one without an address":         {corev1.Pod{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(podAddresses(&tt.pod), " "); got != tt.want {
				t.Errorf("addresses %q, want %q", got, tt.want)
			}
		})
	}
}
