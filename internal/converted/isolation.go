package converted

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Isolation returns the NetworkPolicy that a namespace of a tenant has before
// the tenant can use it: it admits no ingress. vc-syncer adds those that do. The
// labels are those of the namespace.
func Isolation(superNamespace string, labels map[string]string) *networkingv1.NetworkPolicy {
	owner := map[string]string{names.VCName: labels[names.VCName], names.VCNamespace: labels[names.VCNamespace]}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: superNamespace, Name: names.IsolationPolicy, Labels: owner},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
}
