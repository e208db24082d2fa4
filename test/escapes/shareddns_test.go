package escapes

import (
	"context"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The DNS that tenants share", Ordered, func() {
	const (
		malloryPod, victimPod = "127.0.8.1", "127.0.8.2"
		name                  = "of-the-victim.default.svc.cluster.local."
		review                = "review: one process answers all tenants"
	)
	var (
		shared                  *kit.SharedDNS
		mallory, victim         *local.Tenant
		malloryPort, victimPort string
		secret                  *corev1.Service // of the victim
	)
	// asks sends a query and does not wait long for an answer that may not come.
	asks := func(ctx context.Context, from, port, name string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return shared.LookUp(ctx, from, port, name)
	}
	// shouldResolve asserts that a name has an address, and shouldNotExist that it is
	// answered that there is none: a busy server may be late.
	shouldResolve := func(ctx context.Context, from, port, name, address string) {
		GinkgoHelper()
		Eventually(asks).WithContext(ctx).WithArguments(from, port, name).Should(HaveExactElements(address))
	}
	shouldNotExist := func(ctx context.Context, from, port, name string) {
		GinkgoHelper()
		Eventually(func() error {
			found, err := asks(ctx, from, port, name)
			Expect(found).To(BeEmpty(), name)
			return err
		}).Should(MatchError(ContainSubstring("no such host")), name)
	}
	// shouldKeepItsPort asserts that the DNS address of a tenant leads to its own
	// port alone.
	shouldKeepItsPort := func(ctx context.Context, t *local.Tenant, port string) {
		GinkgoHelper()
		number, err := strconv.ParseInt(port, 10, 32)
		Expect(err).NotTo(HaveOccurred())
		Consistently(kit.Read(ctx, shared.Super.Client, shared.SliceOf(t))).Should(And(
			HaveField("Labels", HaveKeyWithValue(names.DNSPort, port)),
			HaveField("Endpoints", HaveLen(1)), HaveField("Ports", HaveEach(HaveField("Port", HaveValue(BeEquivalentTo(number)))))))
	}

	BeforeAll(func(ctx SpecContext) {
		shared = kit.StartSharedDNS(ctx, "127.0.8.53")
		victim, victimPort = shared.Tenant(ctx)
		mallory, malloryPort = shared.Tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24"}}
		})
		shared.PodAt(ctx, mallory, malloryPod)
		shared.PodAt(ctx, victim, victimPod)
		secret = service(metav1.NamespaceDefault, "of-the-victim")
		kit.Create(ctx, victim.Client, secret)
		shouldResolve(ctx, victimPod, victimPort, name, secret.Spec.ClusterIP)
		Eventually(asks).WithContext(ctx).WithArguments(malloryPod, malloryPort, "kube-dns.kube-system.svc.cluster.local.").ShouldNot(BeEmpty())
	})

	attack("the names of another tenant, asked at its own port", review, func(ctx SpecContext) {
		for _, asked := range []string{name, "of-the-victim." + victim.Super("default") + ".svc.cluster.local."} {
			shouldNotExist(ctx, malloryPod, malloryPort, asked)
		}
		_, err := shared.LookUpAddress(ctx, malloryPod, malloryPort, secret.Spec.ClusterIP)
		Expect(err).To(HaveOccurred())
		Expect(shared.LookUpAddress(ctx, victimPod, victimPort, secret.Spec.ClusterIP)).To(HaveExactElements(name))
	})

	attack("the names of another tenant, asked at that tenant's port", review, func(ctx SpecContext) {
		_, err := asks(ctx, malloryPod, victimPort, name)
		Expect(err).To(HaveOccurred())
		shouldResolve(ctx, victimPod, victimPort, name, secret.Spec.ClusterIP)
	})

	attack("another tenant's port, as the target port of its own DNS Service", review, func(ctx SpecContext) {
		target, err := strconv.ParseInt(victimPort, 10, 32)
		Expect(err).NotTo(HaveOccurred())
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: names.DNSService}}
		kit.Edit(ctx, mallory.Client, svc, func(s *corev1.Service) {
			for i := range s.Spec.Ports {
				s.Spec.Ports[i].TargetPort = intstr.FromInt32(int32(target))
			}
			s.Labels[names.DNSPort] = victimPort // a controller copies labels to EndpointSlices
		})
		Eventually(kit.Read(ctx, shared.Super.Client, kit.SuperOf(mallory, svc))).Should(
			HaveField("Spec.Ports", HaveEach(HaveField("TargetPort.IntVal", BeEquivalentTo(target)))))
		shouldKeepItsPort(ctx, mallory, malloryPort)
		shouldKeepItsPort(ctx, victim, victimPort)
	})

	attack("another tenant's port, in an EndpointSlice of its own", review, func(ctx SpecContext) {
		forged := func(name string) *discoveryv1.EndpointSlice {
			slice := kit.EndpointSlice(metav1.NamespaceSystem, name, names.DNSService, "192.0.2.1")
			slice.Labels[names.DNSPort] = victimPort
			kit.Create(ctx, mallory.Client, slice)
			return slice
		}
		Eventually(kit.Rejections(ctx, mallory, forged(names.SharedDNSSlice))).Should(ContainElement(ContainSubstring("use another name")))
		copied := kit.SuperOf(mallory, forged("forged"))
		kit.ShouldExist(ctx, shared.Super.Client, copied)
		Expect(copied.Labels).NotTo(HaveKey(names.DNSPort))
		shouldKeepItsPort(ctx, mallory, malloryPort)
		shouldResolve(ctx, victimPod, victimPort, name, secret.Spec.ClusterIP)
	})

	attack("the names and the port of another tenant, by a converted one", review, func(ctx SpecContext) {
		const converted = "127.0.8.3"
		tenant, port := shared.Tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24"}}
		})
		kit.ShouldExist(ctx, tenant.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
		shared.PodAt(ctx, tenant, converted)
		Eventually(asks).WithContext(ctx).WithArguments(converted, port, "kube-dns.kube-system.svc.cluster.local.").ShouldNot(BeEmpty())
		for _, asked := range []string{
			name, "of-the-victim." + victim.Super("default") + ".svc.cluster.local.", "kubernetes." + tenant.Super("default") + ".svc.cluster.local.",
		} {
			shouldNotExist(ctx, converted, port, asked)
		}
		_, err := asks(ctx, converted, victimPort, name)
		Expect(err).To(HaveOccurred())
		_, err = asks(ctx, malloryPod, port, "kube-dns.kube-system.svc.cluster.local.")
		Expect(err).To(HaveOccurred(), "nor does another ask for its names")
		slice := kit.EndpointSlice(metav1.NamespaceSystem, names.SharedDNSSlice, names.DNSService, "192.0.2.1")
		Expect(tenant.Client.Create(ctx, slice)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(tenant.Client.Delete(ctx, slice)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(tenant.Client.DeleteAllOf(ctx, slice, client.InNamespace(metav1.NamespaceSystem))).To(Succeed())
		slice = kit.EndpointSlice(metav1.NamespaceSystem, "forged", names.DNSService, "192.0.2.1")
		slice.Labels[names.DNSPort] = victimPort
		Expect(tenant.Client.Create(ctx, slice)).To(MatchError(apierrors.IsInvalid, "invalid"))
		shouldKeepItsPort(ctx, tenant, port)
		shouldKeepItsPort(ctx, victim, victimPort)
	})
})
