package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// systemTaints are prefixes of the keys of taints that reserve nodes for the
// cluster, or that keep pods off unusable nodes.
var systemTaints = []string{
	"node-role.kubernetes.io/",
	"node.cloudprovider.kubernetes.io/",
	"node.kubernetes.io/",
}

// conditionTaints are taints for conditions of nodes. Kubernetes adds
// tolerations of them to pods by itself.
var conditionTaints = []string{
	corev1.TaintNodeNotReady,
	corev1.TaintNodeUnreachable,
	corev1.TaintNodeMemoryPressure,
	corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure,
}

// tolerations returns the tolerations of a tenant's pod that are synced down,
// and modifies its argument. A taint reserves nodes, for example for the super
// cluster or for another tenant, so the policy has to name it. A pod runs
// without its other tolerations.
func tolerations(policy tenancyv1alpha1.TenantPolicy, of []corev1.Toleration) []corev1.Toleration {
	if policy.AllowSystemTolerations {
		return of
	}
	allowed := policy.AllowTolerations
	if policy.DaemonSets == tenancyv1alpha1.DaemonSetsRun {
		// DaemonSets run on cordoned nodes, too.
		allowed = append(slices.Clip(allowed), corev1.TaintNodeUnschedulable)
	}
	return slices.DeleteFunc(of, func(t corev1.Toleration) bool { return !mayTolerate(allowed, t) })
}

// mayTolerate reports whether a toleration is for a node's condition or matches
// a pattern. A toleration without a key matches all taints.
func mayTolerate(patterns []string, t corev1.Toleration) bool {
	switch {
	case t.Key == "":
		return false
	case slices.Contains(conditionTaints, t.Key):
		return true
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool { return coversToleration(pattern, t) })
}

// coversToleration reports whether a pattern covers all taints that a
// toleration tolerates: key, key=value, or a prefix of keys and an asterisk,
// which does not match the super cluster's own.
func coversToleration(pattern string, t corev1.Toleration) bool {
	if key, value, valued := strings.Cut(pattern, "="); valued {
		equal := t.Operator == "" || t.Operator == corev1.TolerationOpEqual
		return key == t.Key && equal && value == t.Value
	}
	if beginning, open := strings.CutSuffix(pattern, "*"); open {
		return strings.HasPrefix(t.Key, beginning) && !systemTaint(t.Key)
	}
	return pattern == t.Key
}

// systemTaint reports whether a taint is one of the super cluster's own.
func systemTaint(key string) bool {
	own := slices.ContainsFunc(systemTaints, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	return own && !slices.Contains(conditionTaints, key)
}
