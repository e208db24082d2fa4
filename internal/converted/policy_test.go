package converted_test

import (
	"testing"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

func TestPolicyText(t *testing.T) {
	for want, policy := range map[string]tenancyv1alpha1.TenantPolicy{
		"":                   {PodSecurity: "restricted", AllowTrafficFromTenants: true, Limits: map[string]int64{"pods": 1}},
		"allowNodeName true": {AllowNodeName: true},
		"ingressHosts *\ningressHosts *.a.example": {IngressHosts: []string{"*.a.example", "*"}},
		"allowNodeProfiles true":                   {PodSecurity: "privileged"},
		"allowSchedulers a\nallowSchedulers b\nmaxGracePeriodSeconds 60": {
			AllowSchedulers: []string{"b", "a"}, MaxGracePeriodSeconds: new(int64(60)),
		},
		"allowTolerations a=b\nallowTolerations c/*\nallowVolumeTypes nfs": {
			AllowTolerations: []string{"a=b", "c/*"}, AllowVolumeTypes: []tenancyv1alpha1.VolumeType{"nfs"},
		},
		"endpointCIDRs 192.0.2.0/24\nloadBalancerCIDRs fd00::/8\nloadBalancerClasses a.example/b": {
			EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24"}, LoadBalancerCIDRs: []tenancyv1alpha1.CIDR{"fd00::/8"},
			LoadBalancerClasses: []string{"a.example/b"},
		},
		"allowSchedulers c\nhostPorts 80-90": { // no value adds a line
			AllowSchedulers: []string{"a\nallowHostPath true", "c"}, HostPorts: []tenancyv1alpha1.PortRange{{Min: 80, Max: 90}},
		},
	} {
		if got := converted.PolicyText(policy); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
