package resources

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"

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
	if err := checkSelected("podSelector", v.Tenant.UnselectablePods(&spec.PodSelector)); err != nil {
		return nil, err
	}
	spec.PodSelector = *v.Tenant.PodSelector(&spec.PodSelector)
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
		if err := checkSelected("podSelector", t.UnselectablePods(p.PodSelector)); err != nil {
			return err
		}
		if err := checkSelected("namespaceSelector", t.UnselectableNamespaces(p.NamespaceSelector)); err != nil {
			return err
		}
		p.PodSelector = t.PodSelector(p.PodSelector)
		p.NamespaceSelector = t.NamespaceSelector(p.NamespaceSelector)
	}
	return nil
}

// checkSelected rejects a selector that names labels which stay in the tenant: in the super cluster it would select too little, and with
// NotIn too much.
func checkSelected(field string, stay []string) error {
	if len(stay) > 0 {
		return fmt.Errorf("a %s selects by the label %s, which the super cluster does not get, so that it would not be enforced; "+
			"select by another label", field, stay[0])
	}
	return nil
}
