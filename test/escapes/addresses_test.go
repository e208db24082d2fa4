package escapes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The pool of Service addresses", Ordered, func() {
	const (
		ns     = "pool"
		review = "review: the super cluster's allocator chooses out of all ranges"
		own    = "own idea: what else writes or decides by the part of a tenant"
		// many is enough for an address of the pool to be among those of as
		// many Services, where the super cluster gives one of the pool to one
		// in eight, as to seven in eight.
		many = 64
		// few is more events than chance accounts for.
		few = 4
	)
	var (
		mallory *local.Tenant // External, without a part of the pool
		sharer  *local.Tenant // has a part of the pool
		pool    netip.Prefix
		victim  string // the address of a third tenant's DNS
	)
	inPool := func(address string) bool {
		ip, err := netip.ParseAddr(address)
		return err == nil && pool.Contains(ip)
	}
	// copies returns the addresses that a tenant's Services of the namespace
	// have in the super cluster, without those that have none.
	copies := func(ctx context.Context, t *local.Tenant) func() ([]string, error) {
		return func() ([]string, error) {
			list := &corev1.ServiceList{}
			err := super.Client.List(ctx, list, client.InNamespace(t.Super(ns)))
			var found []string
			for _, s := range list.Items {
				if ip := s.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
					found = append(found, ip)
				}
			}
			return found, err
		}
	}
	remove := func(ctx context.Context, services []*corev1.Service) {
		GinkgoHelper()
		for _, s := range services {
			Expect(mallory.Client.Delete(ctx, s)).To(Succeed())
		}
		Eventually(copies(ctx, mallory)).Should(BeEmpty())
	}
	// ask creates many Services of the hostile tenant and returns them.
	ask := func(ctx context.Context, name string, change ...func(*corev1.ServiceSpec)) []*corev1.Service {
		GinkgoHelper()
		services := make([]*corev1.Service, many)
		for i := range services {
			services[i] = service(ns, fmt.Sprintf("%s-%d", name, i), change...)
			kit.Create(ctx, mallory.Client, services[i])
		}
		return services
	}
	// shouldBeSpared asserts that all Services of the hostile tenant get copies
	// with addresses, and none of the pool.
	shouldBeSpared := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(copies(ctx, mallory)).Should(HaveLen(many))
		found, err := copies(ctx, mallory)()
		Expect(err).NotTo(HaveOccurred())
		Expect(slices.DeleteFunc(found, func(ip string) bool { return !inPool(ip) })).To(BeEmpty(), "addresses of %s", pool)
	}

	BeforeAll(func(ctx SpecContext) {
		served := &networkingv1.ServiceCIDRList{}
		Expect(super.Client.List(ctx, served, client.MatchingLabels{names.ServiceCIDRPool: "true"})).To(Succeed())
		Expect(served.Items).To(HaveExactElements(HaveField("Spec.CIDRs", HaveLen(1))))
		pool = netip.MustParsePrefix(served.Items[0].Spec.CIDRs[0])
		third := tenant(ctx)
		victim = addresses.In(netip.MustParsePrefix(third.VC.Status.ServiceCIDR), addresses.DNS).String()
		Expect(inPool(victim)).To(BeTrue())
		sharer = tenant(ctx)
		mallory, _ = hostileTenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{AllowExternalNames: true}
		})
		Expect(mallory.VC.Status.ServiceCIDR).To(BeEmpty())
		for _, t := range []*local.Tenant{mallory, sharer} {
			kit.Create(ctx, t.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name:        ns,
				Labels:      map[string]string{names.ServiceCIDR: "any"},
				Annotations: map[string]string{names.ServiceCIDR: pool.String()},
			}})
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, kit.Namespace(ns)))
		}
	})

	attack("many Services without an address, by a tenant without a part, for some to get other tenants'", review, func(ctx SpecContext) {
		services := ask(ctx, "many")
		shouldBeSpared(ctx)
		told := &corev1.EventList{}
		Expect(mallory.Client.List(ctx, told, client.InNamespace(ns))).To(Succeed())
		Expect(slices.DeleteFunc(told.Items, func(e corev1.Event) bool { return e.Reason != "SyncRejected" })).To(WithTransform(func(told []corev1.Event) int { return len(told) }, BeNumerically("<", few)))
		remove(ctx, services)
	})

	attack("many Services that become ones with an address", review, func(ctx SpecContext) {
		services := ask(ctx, "external", func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName = corev1.ServiceTypeExternalName, "example.com"
		})
		for _, s := range services {
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, s))
		}
		Expect(copies(ctx, mallory)()).To(BeEmpty())
		for _, s := range services {
			kit.Edit(ctx, mallory.Client, s, func(s *corev1.Service) {
				s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeClusterIP, ""
			})
		}
		shouldBeSpared(ctx)
		remove(ctx, services)
	})

	attack("a part that it writes on its namespace, without having one", own, func(ctx SpecContext) {
		kit.Edit(ctx, mallory.Client, kit.Namespace(ns), func(n *corev1.Namespace) { n.Annotations["example.com/edited"] = "true" })
		Consistently(kit.Read(ctx, super.Client, kit.SuperOf(mallory, kit.Namespace(ns)))).Should(And(
			HaveField("Annotations", HaveKey(names.VCUID)), HaveField("Annotations", Not(HaveKey(names.ServiceCIDR)))))
	})

	attack("a part that it writes on its namespace, larger than its own", own, func(ctx SpecContext) {
		kit.Edit(ctx, sharer.Client, kit.Namespace(ns), func(n *corev1.Namespace) { n.Annotations["example.com/edited"] = "true" })
		Consistently(kit.Read(ctx, super.Client, kit.SuperOf(sharer, kit.Namespace(ns)))).Should(
			HaveField("Annotations", HaveKeyWithValue(names.ServiceCIDR, sharer.VC.Status.ServiceCIDR)))
	})

	attack("another tenant's address, of a Service that a controller of the super cluster makes for it", own, func(ctx SpecContext) {
		at := func(namespace, ip string) *corev1.Service {
			return service(namespace, "gateway", func(s *corev1.ServiceSpec) { s.ClusterIP = ip })
		}
		for _, t := range []*local.Tenant{mallory, sharer} {
			Expect(super.Client.Create(ctx, at(t.Super(ns), victim))).To(MatchError(apierrors.IsForbidden, "forbidden"))
		}
		// The policy is what refuses it: the address is free, and the tenant's
		// own are the tenant's.
		of := netip.MustParsePrefix(sharer.VC.Status.ServiceCIDR)
		mine, platforms := at(sharer.Super(ns), addresses.In(of, 99).String()), at("default", victim)
		kit.Create(ctx, super.Client, mine, platforms)
		Expect(super.Client.Delete(ctx, mine)).To(Succeed())
		Expect(super.Client.Delete(ctx, platforms)).To(Succeed())
	})
})
