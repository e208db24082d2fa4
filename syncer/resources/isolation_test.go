package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// pods are the super cluster's pod ranges in these tests.
var pods = must(ParseRanges([]string{"10.244.0.0/16", "10.245.0.0/16", "fd00:10::/56"}))

func must(r Ranges, err error) Ranges {
	if err != nil {
		panic(err)
	}
	return r
}

// block returns a peer with a range of addresses.
func block(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

// The peers other than pods of other tenants.
var (
	own      = networkingv1.NetworkPolicyPeer{NamespaceSelector: ofBlue()}
	platform = networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "tenancy.x-k8s.io/vcname", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}}
	outside = []networkingv1.NetworkPolicyPeer{block("0.0.0.0/0", "10.244.0.0/16", "10.245.0.0/16"), block("::/0", "fd00:10::/56")}
)

func TestIsolation(t *testing.T) {
	open := view
	open.Tenant.Policy.AllowTrafficFromTenants = true
	for name, tt := range map[string]struct {
		view kinds.View
		pods Ranges
		from []networkingv1.NetworkPolicyPeer
	}{
		"all except other tenants' pods":                    {view, pods, append([]networkingv1.NetworkPolicyPeer{own, platform}, outside...)},
		"a family without ranges may be pods, all of it":    {view, pods[:2], []networkingv1.NetworkPolicyPeer{own, platform, outside[0]}},
		"without ranges, no address is known to be outside": {view, nil, []networkingv1.NetworkPolicyPeer{own, platform}},
		"a tenant that all others may reach":                {open, pods, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, NetworkPolicy(tt.pods))
			got := map[string]networkingv1.NetworkPolicySpec{}
			for _, o := range k.Own {
				if policy := o.Desired(tt.view); policy != nil {
					got[o.Name] = policy.Spec
				}
			}
			want := map[string]networkingv1.NetworkPolicySpec{}
			if tt.from != nil {
				want["tenant-isolation.tenancy.x-k8s.io"] = networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}}
				want["tenant-default.tenancy.x-k8s.io"] = networkingv1.NetworkPolicySpec{
					PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: "tenancy.x-k8s.io/own-ingress", Operator: metav1.LabelSelectorOpDoesNotExist},
					}},
					PolicyTypes: []networkingv1.PolicyType{"Ingress"},
					Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: tt.from}},
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatATenantOpensIsNotOpenToOthers checks that no peer of a tenant selects
// pods of another.
func TestWhatATenantOpensIsNotOpenToOthers(t *testing.T) {
	type peers = []networkingv1.NetworkPolicyPeer
	for name, tt := range map[string]struct {
		pods       Ranges
		from, want peers
	}{
		"everybody":                                 {pods, nil, append(peers{own, platform}, outside...)},
		"every address":                             {pods, peers{block("0.0.0.0/0")}, outside[:1]},
		"a block with all pods":                     {pods, peers{block("10.0.0.0/8")}, peers{block("10.0.0.0/8", "10.244.0.0/16", "10.245.0.0/16")}},
		"a block with exceptions":                   {pods, peers{block("10.244.0.0/15", "10.244.0.0/16")}, peers{block("10.244.0.0/15", "10.244.0.0/16", "10.245.0.0/16")}},
		"one pod's address":                         {pods, peers{block("10.244.7.7/32")}, nil},
		"the pods' addresses, not written as usual": {pods, peers{block("10.244.7.7/16")}, nil},
		"an invalid block":                          {pods, peers{block("010.1.0.0/16")}, nil},
		"a pod's address, mapped to IPv6":           {pods, peers{block("::ffff:10.244.7.7/128")}, nil},
		"addresses outside":                         {pods, peers{block("198.51.100.0/24")}, peers{block("198.51.100.0/24")}},
		"an address of IPv6":                        {pods, peers{block("fd00:10::7/128"), block("2001:db8::/32")}, peers{block("2001:db8::/32")}},
		"addresses, where no range is known":        {nil, peers{block("198.51.100.0/24")}, nil},
		"pods beside addresses of pods": {
			pods, peers{{PodSelector: byLabels("app", "web")}, block("10.244.7.7/32")}, peers{{PodSelector: byLabels("app", "web")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := kindOf[kinds.Down[*networkingv1.NetworkPolicy]](t, NetworkPolicy(tt.pods))
			ports := []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(80))}}
			tenant := &networkingv1.NetworkPolicy{ObjectMeta: meta("web"), Spec: networkingv1.NetworkPolicySpec{
				Ingress: []networkingv1.NetworkPolicyIngressRule{{From: tt.from, Ports: ports}},
			}}
			var want []networkingv1.NetworkPolicyIngressRule
			if tt.want != nil {
				want = []networkingv1.NetworkPolicyIngressRule{{From: tt.want, Ports: ports}}
			}
			got, err := k.Desired(view, tenant)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Spec.Ingress); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			open := view
			open.Tenant.Policy.AllowTrafficFromTenants = true
			if got, err = k.Desired(open, tenant); err != nil || !cmp.Equal(got.Spec.Ingress, tenant.Spec.Ingress) {
				t.Errorf("where others are let in, the rules are %v with error %v, and should stay as they are", got.Spec.Ingress, err)
			}
		})
	}
}

// TestTheDefaultMakesRoom checks that the default policy does not select pods
// that a policy of the tenant selects.
func TestTheDefaultMakesRoom(t *testing.T) {
	about := func(direction networkingv1.PolicyType, app string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *byLabels("app", app), PolicyTypes: []networkingv1.PolicyType{direction},
		}}
	}
	all := &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Egress", "Ingress"}}}
	for name, tt := range map[string]struct {
		policies []*networkingv1.NetworkPolicy
		want     bool
	}{
		"no policy":                 {nil, false},
		"one about it":              {[]*networkingv1.NetworkPolicy{about("Ingress", "web")}, true},
		"one about all":             {[]*networkingv1.NetworkPolicy{all}, true},
		"one about other pods":      {[]*networkingv1.NetworkPolicy{about("Ingress", "cart")}, false},
		"one about what it sends":   {[]*networkingv1.NetworkPolicy{about("Egress", "web")}, false},
		"one about it among others": {[]*networkingv1.NetworkPolicy{about("Ingress", "cart"), about("Ingress", "web")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			shouldMark(t, view, tt.policies, "tenancy.x-k8s.io/own-ingress", tt.want)
		})
	}
}

// shouldMark fails if the copy of a pod with the label app=web does not have the
// label of pods that policies select, or has that label although none selects it,
// whether or not it had the label before.
func shouldMark(t *testing.T, v kinds.View, policies []*networkingv1.NetworkPolicy, label string, want bool) {
	t.Helper()
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	v.Digest = digest(policies...)
	pod := &corev1.Pod{ObjectMeta: meta("web")}
	pod.Labels = map[string]string{"app": "web"}
	desired, err := k.Desired(v, pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, was := range []map[string]string{{}, {label: "true"}} {
		super := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: was}}
		k.Merge(super, desired)
		translate.Merge(super, metav1.ObjectMeta{Labels: desired.Labels})
		if _, got := super.Labels[label]; got != want {
			t.Errorf("a copy that had %v is marked: %t, want %t", was, got, want)
		}
	}
}

// TestPlatformIsNoTenant checks that the other allowed namespaces are those of
// the super cluster itself.
func TestPlatformIsNoTenant(t *testing.T) {
	s, err := metav1.LabelSelectorAsSelector(platform.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Matches(labels.Set{"kubernetes.io/metadata.name": "ingress"}) {
		t.Error("a namespace of the super cluster is not let in")
	}
	if s.Matches(labels.Set{"tenancy.x-k8s.io/vcname": "green"}) {
		t.Error("a tenant's namespace is let in")
	}
}

func TestRanges(t *testing.T) {
	got, err := ParseRanges([]string{"10.245.0.0/16", "10.244.7.7/16", "10.245.0.0/16"})
	if diff := cmp.Diff([]string{"10.244.0.0/16", "10.245.0.0/16"}, texts(got)); diff != "" || err != nil {
		t.Errorf("error %v, ranges (-want +got):\n%s", err, diff)
	}
	for _, wrong := range []string{"", "10.244.0.0", "0.0.0.0/0", "::/0"} {
		if _, err := ParseRanges([]string{wrong}); err == nil {
			t.Errorf("%q was taken for a range of pods", wrong)
		}
	}
}

func texts(r Ranges) []string {
	var all []string
	for _, prefix := range r {
		all = append(all, prefix.String())
	}
	return all
}
