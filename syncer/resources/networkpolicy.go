package resources

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/engine"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// NetworkPolicy flows down, narrowed to the tenant: what selects namespaces selects the tenant's own, by their names there, and who is
// let in is never another tenant's pod. Each namespace has policies of the syncer's besides: nobody comes in, but for whom the tenant
// names and, where it says nothing, who is no other tenant's pod.
func NetworkPolicy(pods PodRanges) engine.Kind {
	return engine.Down[*networkingv1.NetworkPolicy]{
		Name:    "NetworkPolicy",
		Object:  &networkingv1.NetworkPolicy{},
		List:    &networkingv1.NetworkPolicyList{},
		Desired: pods.desiredNetworkPolicy,
		Merge:   func(super, desired *networkingv1.NetworkPolicy) { super.Spec = desired.Spec },
		Own: []engine.Own[*networkingv1.NetworkPolicy]{
			{Name: names.IsolationPolicy, Desired: isolation}, {Name: names.DefaultPolicy, Desired: pods.byDefault},
		},
		Affects: []string{podKind.Kind},
	}
}

func (r PodRanges) desiredNetworkPolicy(v engine.View, tenant *networkingv1.NetworkPolicy) (*networkingv1.NetworkPolicy, error) {
	spec := tenant.Spec.DeepCopy()
	if err := checkSelector(v.Tenant, &spec.PodSelector, "podSelector"); err != nil {
		return nil, err
	}
	for i := range spec.Ingress {
		if err := translatePeers(v.Tenant, spec.Ingress[i].From); err != nil {
			return nil, err
		}
	}
	for i := range spec.Egress {
		if err := translatePeers(v.Tenant, spec.Egress[i].To); err != nil {
			return nil, err
		}
	}
	spec.Ingress = r.withoutTenants(v.Tenant, spec.Ingress)
	return &networkingv1.NetworkPolicy{Spec: *spec}, nil
}

// translatePeers has peers be what they are in the super cluster.
func translatePeers(t translate.Tenant, peers []networkingv1.NetworkPolicyPeer) error {
	for i := range peers {
		p := &peers[i]
		if err := checkSelector(t, p.PodSelector, "podSelector"); err != nil {
			return err
		}
		if err := checkSelector(t, p.NamespaceSelector, "namespaceSelector", corev1.LabelMetadataName); err != nil {
			return err
		}
		p.NamespaceSelector = t.NamespaceSelector(p.NamespaceSelector)
	}
	return nil
}

// checkSelector refuses to select by a label that the super cluster does not get, beside those that are translated. What nothing
// carries there would select too little, and with NotIn too much.
func checkSelector(t translate.Tenant, selector *metav1.LabelSelector, field string, translated ...string) error {
	if stay := t.Unselectable(selector, translated...); len(stay) > 0 {
		return fmt.Errorf("a %s selects by the label %s, which the super cluster does not get, so that it would not be enforced; "+
			"select by another label", field, stay[0])
	}
	return nil
}
