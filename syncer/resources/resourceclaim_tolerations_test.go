package resources

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestTolerationsOfDevices(t *testing.T) {
	exists := resourcev1.DeviceToleration{Key: "example.com/reserved", Operator: resourcev1.DeviceTolerationOpExists}
	all := resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists}
	red := resourcev1.DeviceToleration{Key: "example.com/reserved", Operator: resourcev1.DeviceTolerationOpEqual, Value: "red"}
	policy := func(patterns ...string) tenancyv1alpha1.TenantPolicy {
		return tenancyv1alpha1.TenantPolicy{AllowTolerations: patterns}
	}
	tests := map[string]struct {
		policy tenancyv1alpha1.TenantPolicy
		of     resourcev1.DeviceToleration
		want   bool
	}{
		"a taint":                            {policy(), exists, false},
		"a taint that the policy names":      {policy("example.com/reserved"), exists, true},
		"its value, which the policy names":  {policy("example.com/reserved=red"), red, true},
		"any value, where it names one":      {policy("example.com/reserved=red"), exists, false},
		"all taints":                         {policy("*"), all, false},
		"all, where the policy has no limit": {tenancyv1alpha1.TenantPolicy{AllowSystemTolerations: true}, all, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			of := []resourcev1.DeviceToleration{tt.of}
			for request, r := range map[string]*resourcev1.DeviceRequest{
				"exactly":         {Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "fast", Tolerations: of}},
				"first available": {Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{{DeviceClassName: "fast", Tolerations: of}}},
			} {
				if err := admitDeviceRequest(under(tt.policy), r); (err == nil) != tt.want {
					t.Errorf("%s: admitted with error %v, want admitted: %t", request, err, tt.want)
				}
			}
		})
	}
}
