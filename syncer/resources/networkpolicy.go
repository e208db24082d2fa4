package resources

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

const networkPolicyKind = "NetworkPolicy"

// NetworkPolicy is synced down, narrowed to the tenant: selectors of namespaces
// select the tenant's own, by their names in the super cluster, and no peer is
// a pod of another tenant. In addition, the syncer has policies of its own in
// each namespace: they only allow the peers that the tenant names and, by
// default, all except pods of other tenants.
func NetworkPolicy(pods Ranges) kinds.Flow {
	return kinds.Down[*networkingv1.NetworkPolicy]{
		Name:     networkPolicyKind,
		Object:   &networkingv1.NetworkPolicy{},
		List:     &networkingv1.NetworkPolicyList{},
		Summary:  "down, restricted to the tenant's namespaces; pods of other tenants are kept out by default",
		Optional: true,
		Desired:  pods.desiredNetworkPolicy,
		Merge:    func(super, desired *networkingv1.NetworkPolicy) { super.Spec = desired.Spec },
		Reserved: names.PlatformPolicy,
		Own: []kinds.Own[*networkingv1.NetworkPolicy]{
			{Name: names.IsolationPolicy, Desired: isolation}, {Name: names.DefaultPolicy, Desired: pods.byDefault},
		},
		OwnInNetworks:  Outside{}.own(),
		Affects:        []string{podKind.Kind},
		Digest:         digestPolicies,
		MaxInNamespace: maxNetworkPolicies,
	}
}

// maxNetworkPolicies is the maximum of a tenant's NetworkPolicies in a namespace
// of the super cluster. Each is compared with each pod, by the syncer and by the
// component that enforces it.
const maxNetworkPolicies = 200

// networkPolicySelectors returns the selectors of a policy.
func networkPolicySelectors(spec *networkingv1.NetworkPolicySpec) []*metav1.LabelSelector {
	selectors := []*metav1.LabelSelector{&spec.PodSelector}
	add := func(peers []networkingv1.NetworkPolicyPeer) {
		for i := range peers {
			selectors = append(selectors, peers[i].PodSelector, peers[i].NamespaceSelector)
		}
	}
	for i := range spec.Ingress {
		add(spec.Ingress[i].From)
	}
	for i := range spec.Egress {
		add(spec.Egress[i].To)
	}
	return selectors
}

func (r Ranges) desiredNetworkPolicy(v kinds.View, tenant *networkingv1.NetworkPolicy) (*networkingv1.NetworkPolicy, error) {
	if err := checkSize(sizeOf(networkPolicySelectors(&tenant.Spec)...)); err != nil {
		return nil, err
	}
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

// translatePeers translates the selectors of peers.
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

// checkSelected rejects a selector with labels that stay in the tenant: in the
// super cluster it would select too little, and with NotIn too much.
func checkSelected(field string, stay []string) error {
	if len(stay) > 0 {
		return fmt.Errorf("a %s selects by the label %s, which is not synced down, so that it would not be enforced; "+
			"select by another label", field, stay[0])
	}
	return nil
}
