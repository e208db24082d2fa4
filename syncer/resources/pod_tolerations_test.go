package resources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
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
		"node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure",
	)
	others := exists("nvidia.com/gpu", "kubernetes.io/arch", "dedicated")
	system := exists(
		"", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node.cloudprovider.kubernetes.io/uninitialized",
		"node.kubernetes.io/unschedulable", "node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-service",
	)
	system = append(system,
		corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		corev1.Toleration{Key: "node-role.kubernetes.io/infra", Operator: corev1.TolerationOpEqual, Value: "yes"},
	)
	all := slices.Concat(system, everyday, others)

	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for _, tt := range []struct {
		name   string
		policy tenancyv1alpha1.TenantPolicy
		want   []corev1.Toleration
	}{
		{"by default", tenancyv1alpha1.TenantPolicy{}, everyday},
		{"with those of the system allowed", tenancyv1alpha1.TenantPolicy{AllowSystemTolerations: true}, all},
		{
			"with DaemonSets allowed", tenancyv1alpha1.TenantPolicy{DaemonSets: tenancyv1alpha1.DaemonSetsRun},
			slices.Concat(exists("node.kubernetes.io/unschedulable"), everyday),
		},
		{"with others allowed", tenancyv1alpha1.TenantPolicy{AllowTolerations: []string{"*"}}, slices.Concat(everyday, others)},
		{
			"with one of the system's own by name",
			tenancyv1alpha1.TenantPolicy{AllowTolerations: []string{"node-role.kubernetes.io/master", "node-role.kubernetes.io/*"}},
			slices.Concat(exists("node-role.kubernetes.io/master"), everyday),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tenant := tenantPod(func(p *corev1.Pod) { p.Spec.Tolerations = all })
			copied, err := k.Desired(under(tt.policy), tenant)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, copied.Spec.Tolerations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("a new copy's (-want +got):\n%s", diff)
			}

			// Including those that are added to a running pod.
			super := &corev1.Pod{ObjectMeta: superMeta("web")}
			k.Merge(super, copied)
			if diff := cmp.Diff(tt.want, super.Spec.Tolerations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("a running copy's (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayTolerate(t *testing.T) {
	patterns := []string{"gpu", "dedicated=red", "empty=", "example.com/*"}
	for name, tt := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"a key, any value":                   {corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}, true},
		"a key, one value":                   {corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "a100"}, true},
		"a key that begins like one":         {corev1.Toleration{Key: "gpus", Operator: corev1.TolerationOpExists}, false},
		"a value":                            {corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "red"}, true},
		"a value, without an operator":       {corev1.Toleration{Key: "dedicated", Value: "red"}, true},
		"another value":                      {corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "blue"}, false},
		"any value where one is allowed":     {corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}, false},
		"more than a value, as a number":     {corev1.Toleration{Key: "dedicated", Operator: "Gt", Value: "red"}, false},
		"an empty value":                     {corev1.Toleration{Key: "empty", Operator: corev1.TolerationOpEqual}, true},
		"any value where none is allowed":    {corev1.Toleration{Key: "empty", Operator: corev1.TolerationOpExists}, false},
		"the beginning of a key":             {corev1.Toleration{Key: "example.com/a", Operator: corev1.TolerationOpExists}, true},
		"another beginning":                  {corev1.Toleration{Key: "example.org/a", Operator: corev1.TolerationOpExists}, false},
		"everything":                         {corev1.Toleration{Operator: corev1.TolerationOpExists}, false},
		"the condition of a node":            {corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}, true},
		"a node that is kept free of others": {corev1.Toleration{Key: "node-role.kubernetes.io/control-plane"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayTolerate(patterns, tt.toleration); got != tt.want {
				t.Errorf("mayTolerate(%v, %v) = %t, want %t", patterns, tt.toleration, got, tt.want)
			}
		})
	}
}
