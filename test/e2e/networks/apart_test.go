package networks

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// nodeAddress returns the address of the node.
func nodeAddress(ctx context.Context) string {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(super.Client.List(ctx, nodes)).To(Succeed())
	Expect(nodes.Items).To(HaveLen(1))
	return nodes.Items[0].Status.Addresses[0].Address
}

// everyCell returns the connections of each member to each other one. Members of
// one network of one tenant reach each other.
func everyCell(members []*member, node string) []cell {
	var cells []cell
	for _, from := range members {
		for _, to := range members {
			if from == to {
				continue
			}
			for _, at := range to.endpoints(node) {
				cells = append(cells, cell{from, to.String(), at, from.tenant == to.tenant && from.network == to.network})
			}
		}
	}
	return cells
}

// openingAll returns policies of a tenant that allow everything that it can name,
// for each network of a namespace.
func openingAll(namespace string) []*networkingv1.NetworkPolicy {
	var all []*networkingv1.NetworkPolicy
	for _, network := range []string{closed, open, ranged, "default"} {
		for name, peers := range map[string][]networkingv1.NetworkPolicyPeer{
			"all-of-" + network: nil,
			"each-of-" + network: {
				{NamespaceSelector: &metav1.LabelSelector{}}, {PodSelector: &metav1.LabelSelector{}},
				{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "10.244.0.0/16"}},
			},
		} {
			all = append(all, &networkingv1.NetworkPolicy{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{networkv1.Label: network}},
				Spec: networkingv1.NetworkPolicySpec{
					PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
					Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: peers}},
					Egress:      []networkingv1.NetworkPolicyEgressRule{{To: peers}},
				},
			})
		}
	}
	return all
}

var _ = Describe("Networks", Ordered, func() {
	const here, elsewhere = "here", "elsewhere"
	var (
		members []*member
		cells   []cell
		node    string
	)

	BeforeAll(func(ctx SpecContext) {
		node = nodeAddress(ctx)
		for _, t := range []*local.Tenant{red, blue} {
			for _, namespace := range []string{here, elsewhere} {
				newNamespace(ctx, t, namespace)
				for _, network := range []string{closed, open} {
					members = append(members, join(ctx, t, network, namespace))
				}
			}
		}
		for _, m := range members {
			m.shouldRun(ctx)
		}
		cells = everyCell(members, node)
	})

	It("connect their own pods, and no others, a row of the table", Label(smoke), func(ctx SpecContext) {
		var row []cell
		for _, c := range cells {
			if c.from == members[0] {
				row = append(row, c)
			}
		}
		Eventually(differing(those(row, true))).WithContext(ctx).Should(BeEmpty()) // a datagram may be lost
		Expect(differing(those(row, false))(ctx)).To(BeEmpty())
	})

	// everyCellHolds tries the whole table.
	everyCellHolds := func(ctx SpecContext) {
		GinkgoHelper()
		Expect(those(cells, true)).To(HaveLen(8 * 1 * 6))
		Expect(those(cells, false)).To(HaveLen(8 * 6 * 6))
		Eventually(differing(those(cells, true))).WithContext(ctx).Should(BeEmpty())
		Expect(differing(cells)(ctx)).To(BeEmpty())
	}

	It("connect their own pods, and no others, by every address and protocol", func(ctx SpecContext) { everyCellHolds(ctx) })

	It("connect no others although their tenants' policies allow everything", func(ctx SpecContext) {
		for _, t := range []*local.Tenant{red, blue} {
			for _, namespace := range []string{here, elsewhere} {
				for _, p := range openingAll(namespace) {
					Expect(t.Client.Create(ctx, p)).To(Succeed())
					DeferCleanup(func(ctx SpecContext) { Expect(t.Client.Delete(ctx, p)).To(Succeed()) })
					copied := client.ObjectKey{Namespace: t.Super(namespace), Name: p.Name}
					Eventually(super.Client.Get).WithContext(ctx).WithArguments(copied, &networkingv1.NetworkPolicy{}).Should(Succeed())
				}
			}
		}
		for _, m := range members {
			copied := client.ObjectKey{Namespace: m.tenant.Super(m.namespace), Name: m.pod.Name}
			Eventually(func(ctx context.Context) (map[string]string, error) {
				pod := &corev1.Pod{}
				err := super.Client.Get(ctx, copied, pod)
				return pod.Labels, err
			}).WithContext(ctx).Should(HaveKey(names.OwnEgress), "the policies have an effect on "+fmt.Sprint(m))
		}
		everyCellHolds(ctx)
	})
})
