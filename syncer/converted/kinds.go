package converted

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds returns the kinds of which objects of converted tenants are validated and
// counted: those that other tenants declare. Addresses of Services are not among
// them, since controllers of the super cluster write them.
func Kinds() []schema.GroupKind {
	core := func(kind string) schema.GroupKind { return schema.GroupKind{Group: corev1.GroupName, Kind: kind} }
	return []schema.GroupKind{
		core("ConfigMap"), core("Namespace"), core("PersistentVolumeClaim"), core("Pod"), core("Secret"), core("Service"), core("ServiceAccount"),
		{Group: networkingv1.GroupName, Kind: "Ingress"}, {Group: networkingv1.GroupName, Kind: "NetworkPolicy"},
		{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"},
	}
}
