package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

func TestTolerationsOfAPod(t *testing.T) {
	exists := func(keys ...string) (out []corev1.Toleration) {
		for _, key := range keys {
			out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		return out
	}
	everyday := exists(
		"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/memory-pressure",
		"node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure", "nvidia.com/gpu", "kubernetes.io/arch", "dedicated",
	)
	system := exists(
		"", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node.cloudprovider.kubernetes.io/uninitialized",
		"node.kubernetes.io/unschedulable", "node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-service",
	)
	system = append(system,
		corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		corev1.Toleration{Key: "node-role.kubernetes.io/infra", Operator: corev1.TolerationOpEqual, Value: "yes"},
	)
	both := append(append([]corev1.Toleration{}, system...), everyday...)

	k := kindOf[engine.Down[*corev1.Pod]](t, Pod())
	for _, tt := range []struct {
		name   string
		policy tenancyv1alpha1.TenantPolicy
		want   []corev1.Toleration
	}{
		{"by default", tenancyv1alpha1.TenantPolicy{}, everyday},
		{"with those of the system allowed", tenancyv1alpha1.TenantPolicy{AllowSystemTolerations: true}, both},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tenant := tenantPod(func(p *corev1.Pod) { p.Spec.Tolerations = both })
			copied, err := k.Desired(under(tt.policy), tenant)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, copied.Spec.Tolerations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("a new copy's (-want +got):\n%s", diff)
			}

			// Also those that are added to a pod that runs.
			super := &corev1.Pod{ObjectMeta: superMeta("web")}
			k.Merge(super, copied)
			if diff := cmp.Diff(tt.want, super.Spec.Tolerations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("a running copy's (-want +got):\n%s", diff)
			}
		})
	}
}
