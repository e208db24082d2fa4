package resources

import (
	"cmp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// maxDefaultPolicies is the maximum of NetworkPolicies that are the default of
// one namespace of a converted tenant.
const maxDefaultPolicies = 16

// ConvertedPolicies returns the platform's NetworkPolicies in a namespace of a
// converted tenant. They admit what those in a namespace of another tenant do.
// The tenant's own, which are in the same namespace, select no pods: each has a
// restricted copy instead. Copies of pods have a label by which the default
// policy leaves out those that others select; the pods of a converted tenant are
// its own, so that the default selects the complement of the other selectors.
func (r Ranges) ConvertedPolicies(t translate.Tenant, own []*networkingv1.NetworkPolicy) []*networkingv1.NetworkPolicy {
	own = slices.SortedFunc(slices.Values(own), func(a, b *networkingv1.NetworkPolicy) int { return cmp.Compare(a.Name, b.Name) })
	var all []*networkingv1.NetworkPolicy
	add := func(name string, policy *networkingv1.NetworkPolicy) {
		if policy != nil {
			policy.Name = name
			all = append(all, policy)
		}
	}
	view := kinds.View{Tenant: t}
	add(names.IsolationPolicy, isolation(view))
	var selectors []*metav1.LabelSelector
	for _, policy := range own {
		copied := r.effective(t, policy)
		add(names.EffectivePolicy(policy.Name), copied)
		if slices.Contains(copied.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			selectors = append(selectors, &copied.Spec.PodSelector)
		}
	}
	for i, selector := range complement(selectors, maxDefaultPolicies) {
		policy := r.byDefault(view)
		if policy == nil {
			break
		}
		policy.Spec.PodSelector = selector
		add(names.DefaultPolicyPart(i), policy)
	}
	return all
}

// effective returns the copy of a converted tenant's policy: it selects the pods
// that the tenant's is for, and admits no pods of other tenants.
func (r Ranges) effective(t translate.Tenant, own *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	spec := own.Spec.DeepCopy()
	spec.PodSelector.MatchExpressions = slices.DeleteFunc(spec.PodSelector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == names.Converted && e.Operator == metav1.LabelSelectorOpDoesNotExist
	})
	for _, rule := range spec.Ingress {
		keepNamespaces(t, rule.From)
	}
	for _, rule := range spec.Egress {
		keepNamespaces(t, rule.To)
	}
	spec.Ingress = r.withoutTenants(t, spec.Ingress)
	return &networkingv1.NetworkPolicy{Spec: *spec}
}

// keepNamespaces has peers select only namespaces of the tenant. The gateway has
// written that into the tenant's policies, so that it changes nothing unless the
// gateway has an error.
func keepNamespaces(t translate.Tenant, peers []networkingv1.NetworkPolicyPeer) {
	for i := range peers {
		if selector := peers[i].NamespaceSelector; selector != nil {
			metav1.AddLabelToSelector(selector, names.Converted, t.Key)
		}
	}
}
