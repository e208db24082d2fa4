// Package podsecurity has how namespaces of tenants say which level of the Pod
// Security Standards their pods have to meet (Kubernetes documentation: Pod
// Security Admission).
package podsecurity

import (
	"cmp"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Enforce is the label by which Pod Security admission rejects pods.
const Enforce = "pod-security.kubernetes.io/enforce"

// Level returns the value of the label for a policy.
func Level(policy tenancyv1alpha1.TenantPolicy) string {
	return string(cmp.Or(policy.PodSecurity, tenancyv1alpha1.PodSecurityBaseline))
}
