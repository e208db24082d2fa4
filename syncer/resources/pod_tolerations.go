package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// systemTaints begin the keys of taints by which a cluster keeps nodes for itself, or pods off nodes that are not in use.
var systemTaints = []string{
	"node-role.kubernetes.io/",
	"node.cloudprovider.kubernetes.io/",
	"node.kubernetes.io/",
}

// conditionTaints say how a node is. Kubernetes adds tolerations of them to pods by itself.
var conditionTaints = []string{
	corev1.TaintNodeNotReady,
	corev1.TaintNodeUnreachable,
	corev1.TaintNodeMemoryPressure,
	corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure,
}

// tolerations are those of a tenant's pod that go down. It may not go where the super cluster keeps nodes for itself unless the
// policy says so: tolerations of all taints and of such ones are left out. They are the slice that is given.
func tolerations(policy tenancyv1alpha1.TenantPolicy, of []corev1.Toleration) []corev1.Toleration {
	if policy.AllowSystemTolerations {
		return of
	}
	return slices.DeleteFunc(of, func(t corev1.Toleration) bool { return t.Key == "" || systemTaint(t.Key) })
}

// systemTaint says whether a taint is the super cluster's own.
func systemTaint(key string) bool {
	own := slices.ContainsFunc(systemTaints, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	return own && !slices.Contains(conditionTaints, key)
}
