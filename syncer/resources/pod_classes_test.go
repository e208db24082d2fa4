package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPriorityOfAPod(t *testing.T) {
	system := tenancyv1alpha1.TenantPolicy{AllowSystemPriority: true}
	tests := map[string]struct {
		policy     tenancyv1alpha1.TenantPolicy
		name, want string
	}{
		"none":                              {name: "", want: ""},
		"an offered class":                  {name: "gold", want: "gold"},
		"one of the tenant's own":           {name: "mine", want: ""},
		"one of the system":                 {name: "system-node-critical", want: ""},
		"another one of the system":         {name: "system-cluster-critical", want: ""},
		"one of the system, allowed":        {system, "system-node-critical", "system-node-critical"},
		"another of the system, allowed":    {system, "system-cluster-critical", "system-cluster-critical"},
		"one of the tenant's own, all else": {system, "mine", ""},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := offering("PriorityClass", "gold")
			v.Tenant.Policy = tt.policy
			copied, err := k.Desired(v, tenantPod(func(p *corev1.Pod) { p.Spec.PriorityClassName = tt.name }))
			if err != nil || copied.Spec.PriorityClassName != tt.want {
				t.Errorf("the copy has class %q, error %v; want %q", copied.Spec.PriorityClassName, err, tt.want)
			}
		})
	}
}
