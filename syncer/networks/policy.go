package networks

import (
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// policyName is the name of the ValidatingAdmissionPolicy in a tenant, and of
// its binding.
const policyName = "networks.arktos.futurewei.com"

// policySpec returns the policy that keeps the tenant's users from what
// only the platform, a user of the tenant, may do: write the status of a
// network, delete the API of networks with all networks, create, relabel or
// delete the ServiceCIDRs of networks, and write the Services of networks with
// their endpoints. A pod stays in its network; the policy
// says so where the label would otherwise have no effect.
func policySpec(platform string) admissionv1.ValidatingAdmissionPolicySpec {
	isPlatform := "request.userInfo.username == " + strconv.QuoteToASCII(platform)
	named := func(object string) string {
		return object + ".metadata.?labels[?'" + networkv1.Label + "'].orValue('')"
	}
	ofRange := func(object string) string { return "(" + object + " == null ? '' : " + named(object) + ")" }
	isTenants := func(object string) string {
		return "(" + object + " == null || !has(" + object + ".metadata.annotations) || !('" + names.NetworkService + "' in " +
			object + ".metadata.annotations))"
	}
	return admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: new(admissionv1.Equivalent),
			ResourceRules: []admissionv1.NamedRuleWithOperations{
				matches(networkv1.GroupVersion.Group, networkv1.GroupVersion.Version, networkv1.Resource+"/status", admissionv1.Update),
				onlyNamed(policyName, matches(
					apiextensionsv1.GroupName, apiextensionsv1.SchemeGroupVersion.Version, "customresourcedefinitions", admissionv1.Delete)),
				matches(corev1.GroupName, corev1.SchemeGroupVersion.Version, "pods", admissionv1.Update),
				matches(networkingv1.GroupName, networkingv1.SchemeGroupVersion.Version, "servicecidrs",
					admissionv1.Create, admissionv1.Update, admissionv1.Delete),
				matches(corev1.GroupName, corev1.SchemeGroupVersion.Version, "services",
					admissionv1.Create, admissionv1.Update, admissionv1.Delete),
				matches(discoveryv1.GroupName, discoveryv1.SchemeGroupVersion.Version, "endpointslices",
					admissionv1.Create, admissionv1.Update, admissionv1.Delete),
			},
		},
		Validations: []admissionv1.Validation{
			{
				Expression: "request.resource.resource != 'networks' || " + isPlatform,
				Message:    "only the platform writes the status of a network", Reason: new(metav1.StatusReasonForbidden),
			},
			{
				Expression: "request.resource.resource != 'customresourcedefinitions' || " + isPlatform,
				Message:    "the platform keeps the API of networks; delete single networks instead", Reason: new(metav1.StatusReasonForbidden),
			},
			{
				Expression: "request.resource.resource != 'pods' || " + named("object") + " == " + named("oldObject"),
				Message: "the label " + networkv1.Label + " of a pod is immutable: a pod stays in its network; " +
					"create another pod",
				Reason: new(metav1.StatusReasonInvalid),
			},
			{
				Expression: "request.resource.resource != 'servicecidrs' || " + isPlatform + " || " + ofRange("object") + " == " + ofRange("oldObject"),
				Message:    "the platform keeps the ServiceCIDRs of networks; change spec.service.cidrs of the Network instead",
				Reason:     new(metav1.StatusReasonForbidden),
			},
			{
				Expression: "!(request.resource.resource in ['services', 'endpointslices']) || " + isPlatform + " || " +
					isTenants("object") + " && " + isTenants("oldObject"),
				Message: "the platform keeps the Services " + names.APIService + "-<network> and " + names.DNSService +
					"-<network> of networks, and their endpoints",
				Reason: new(metav1.StatusReasonForbidden),
			},
		},
	}
}

// matches returns a rule for operations on a resource, with the defaults of an
// apiserver.
func matches(group, version, resource string, operations ...admissionv1.OperationType) admissionv1.NamedRuleWithOperations {
	return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}, Scope: new(admissionv1.AllScopes),
		},
	}}
}

// onlyNamed limits a rule to the object of a name.
func onlyNamed(name string, rule admissionv1.NamedRuleWithOperations) admissionv1.NamedRuleWithOperations {
	rule.ResourceNames = []string{name}
	return rule
}

// bindingSpec returns the binding of the policy.
func bindingSpec() admissionv1.ValidatingAdmissionPolicyBindingSpec {
	return admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
}
