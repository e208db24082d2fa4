package installation

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const gatewayGroup, tlsRoute, tlsRoutes = "gateway.networking.k8s.io", "TLSRoute", "tlsroutes"

// Kind is a kind of objects of which an installation consists.
type Kind struct {
	schema.GroupVersionKind

	// Resource is the plural in the API.
	Resource string
}

// Kinds returns the kinds of the objects of the chart, in the order in which
// they are deleted: the webhook first, since nothing answers it once the
// workloads are gone. OptionalKinds has those of other projects.
func Kinds() []Kind {
	var kinds []Kind
	for _, group := range []struct {
		name, version string
		resources     [][2]string
	}{
		{"admissionregistration.k8s.io", "v1", [][2]string{
			{"ValidatingWebhookConfiguration", "validatingwebhookconfigurations"},
		}},
		{"apps", "v1", [][2]string{{"Deployment", "deployments"}, {"StatefulSet", "statefulsets"}}},
		{"policy", "v1", [][2]string{{"PodDisruptionBudget", "poddisruptionbudgets"}}},
		{networkingv1.GroupName, "v1", [][2]string{{"NetworkPolicy", "networkpolicies"}}},
		{"admissionregistration.k8s.io", "v1", [][2]string{
			{"ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"},
			{"ValidatingAdmissionPolicy", "validatingadmissionpolicies"},
		}},
		{"", "v1", [][2]string{{"Service", "services"}, {"ConfigMap", "configmaps"}}},
		// After the Services, which may have addresses of it.
		{networkingv1.GroupName, "v1", [][2]string{{"ServiceCIDR", "servicecidrs"}}},
		{"rbac.authorization.k8s.io", "v1", [][2]string{
			{"RoleBinding", "rolebindings"}, {"Role", "roles"},
			{"ClusterRoleBinding", "clusterrolebindings"}, {"ClusterRole", "clusterroles"},
		}},
		{"", "v1", [][2]string{{"ServiceAccount", "serviceaccounts"}}},
		{"apiextensions.k8s.io", "v1", [][2]string{{"CustomResourceDefinition", "customresourcedefinitions"}}},
		{"", "v1", [][2]string{{"Namespace", "namespaces"}}},
	} {
		for _, r := range group.resources {
			kinds = append(kinds, Kind{
				GroupVersionKind: schema.GroupVersionKind{Group: group.name, Version: group.version, Kind: r[0]}, Resource: r[1],
			})
		}
	}
	return kinds
}

// OptionalKinds returns the kinds of which the chart has objects on request, those
// of other projects included, and those that vc-gateway makes.
func OptionalKinds() []Kind {
	return []Kind{
		// The registration of the webhooks for converted tenants, of which there are none any more.
		{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), "mutatingwebhookconfigurations"},
		// Kubernetes serves them from 1.36 on.
		{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"), "mutatingadmissionpolicybindings"},
		{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"), "mutatingadmissionpolicies"},
		{schema.GroupVersionKind{Group: networkingv1.GroupName, Version: "v1", Kind: "Ingress"}, "ingresses"},
		// In each version that the values allow, since a cluster may serve one of them only.
		{schema.GroupVersionKind{Group: gatewayGroup, Version: "v1", Kind: tlsRoute}, tlsRoutes},
		{schema.GroupVersionKind{Group: gatewayGroup, Version: "v1alpha3", Kind: tlsRoute}, tlsRoutes},
		{schema.GroupVersionKind{Group: gatewayGroup, Version: "v1alpha2", Kind: tlsRoute}, tlsRoutes},
		{schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}, "servicemonitors"},
		{schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, "certificates"},
		{schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"}, "issuers"},
	}
}
