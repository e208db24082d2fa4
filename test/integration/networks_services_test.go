package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// haveServices matches a network whose Services are in a state.
func haveServices(reason, message string) gomegatypes.GomegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", networkv1.ConditionServices), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
}

// apiServiceOf returns the Service of the apiserver in a network, and its
// EndpointSlice.
func apiServiceOf(network string) (*corev1.Service, *discoveryv1.EndpointSlice) {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: names.APIService + "-" + network}
	return &corev1.Service{ObjectMeta: meta}, &discoveryv1.EndpointSlice{ObjectMeta: meta}
}

// endpointsOfAPI returns the EndpointSlice of a tenant's apiserver. Without nodes,
// the platform has made none.
func endpointsOfAPI(ctx context.Context, t *local.Tenant) *discoveryv1.EndpointSlice {
	GinkgoHelper()
	slice := kit.EndpointSlice(metav1.NamespaceDefault, names.APIService, names.APIService, "192.0.2.1")
	Expect(client.IgnoreAlreadyExists(t.Client.Create(ctx, slice))).To(Succeed())
	Expect(kit.Get(ctx, t.Client, slice)).To(Succeed())
	return slice
}

// leadTo matches an EndpointSlice with the endpoints of another.
func leadTo(other *discoveryv1.EndpointSlice) gomegatypes.GomegaMatcher {
	return And(HaveField("Endpoints", Equal(other.Endpoints)), HaveField("Ports", Equal(other.Ports)))
}

var _ = Describe("Services of networks", Ordered, func() {
	BeforeAll(func() {
		useSyncer(account, func(o *app.Options) { o.Networks, o.Patrol = true, 3*time.Second })
	})

	for _, isolation := range []tenancyv1alpha1.Isolation{tenancyv1alpha1.IsolationShared, tenancyv1alpha1.IsolationDedicated} {
		It("lead to the apiserver of a "+string(isolation)+" tenant, and vanish with their network", func(ctx SpecContext) {
			red := tenant(ctx, kit.WithIsolation(isolation))
			of := endpointsOfAPI(ctx, red)
			n := network("lab", networkv1.TypeFlat)
			createNetwork(ctx, red, n)
			Eventually(kit.Read(ctx, red.Client, n)).Should(And(isReady(), haveServices(networkv1.ReasonServicesCreated, "default/kubernetes-lab")))
			service, slice := apiServiceOf("lab")
			Expect(kit.Get(ctx, red.Client, service)).To(Succeed())
			Expect(service).To(And(
				HaveField("Labels", HaveKeyWithValue(networkv1.Label, "lab")), HaveField("Spec.Ports", ConsistOf(HaveField("Port", int32(443))))))
			Eventually(kit.Read(ctx, red.Client, slice)).Should(leadTo(of))
			Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, service))).Should(And(
				copiedTo(red, "lab"), HaveField("Spec.ClusterIP", service.Spec.ClusterIP)))
			Eventually(kit.Read(ctx, super.Client, kit.SuperOf(red, slice))).Should(leadTo(of))

			By("leaving the Services kubernetes and kube-dns to the default network")
			own, _ := apiServiceOf("default")
			kit.ShouldStayAbsent(ctx, red.Client, own)

			Expect(red.Client.Delete(ctx, n)).To(Succeed())
			kit.ShouldVanish(ctx, red.Client, n)
			kit.ShouldVanish(ctx, red.Client, service)
			kit.ShouldVanish(ctx, red.Client, slice)
			kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, service))
			kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, slice))
		})
	}

	It("are in a control plane that the platform does not run", func(ctx SpecContext) {
		t := externalTenant(ctx)
		of := endpointsOfAPI(ctx, t)
		createNetwork(ctx, t, network("lab", networkv1.TypeFlat))
		service, slice := apiServiceOf("lab")
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(t, service))
		Eventually(kit.Read(ctx, t.Client, slice)).Should(leadTo(of))

		By("following its endpoints")
		kit.Edit(ctx, t.Client, of, func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = new("other") })
		Eventually(kit.Read(ctx, t.Client, slice)).Should(HaveField("Ports", ConsistOf(HaveField("Name", HaveValue(Equal("other"))))))

		By("restoring what a user with the platform's permissions edits or deletes")
		kit.Edit(ctx, t.Client, service, func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "other"} })
		Eventually(kit.Read(ctx, t.Client, service)).Should(HaveField("Spec.Selector", BeEmpty()))
		for _, obj := range []client.Object{service, slice} {
			Expect(kit.Get(ctx, t.Client, obj)).To(Succeed())
			was := obj.GetUID()
			Expect(t.Client.Delete(ctx, obj)).To(Succeed())
			Eventually(kit.Read(ctx, t.Client, obj)).Should(HaveField("UID", Not(Equal(was))))
		}
	})

	It("are the platform's, and a name that is taken is not taken over", func(ctx SpecContext) {
		red := tenant(ctx)
		endpointsOfAPI(ctx, red)
		taken, _ := apiServiceOf("taken")
		taken.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		kit.Create(ctx, red.Client, taken)
		long := strings.Repeat("long-", 11) + "x"
		for name, reason := range map[string]string{"taken": networkv1.ReasonServiceNameTaken, long: networkv1.ReasonServiceNameTooLong} {
			n := network(name, networkv1.TypeFlat)
			createNetwork(ctx, red, n)
			Eventually(kit.Read(ctx, red.Client, n)).Should(And(isReady(), haveServices(reason, "kubernetes-"+name)))
		}
		Expect(kit.Read(ctx, red.Client, taken)()).To(HaveField("Spec.Ports", ConsistOf(HaveField("Port", int32(80)))))

		By("making it when the name is free")
		Expect(red.Client.Delete(ctx, taken)).To(Succeed())
		Eventually(kit.Read(ctx, red.Client, network("taken", ""))).Should(haveServices(networkv1.ReasonServicesCreated, "default/kubernetes-taken"))

		By("keeping them from the tenant's users")
		service, slice := apiServiceOf("taken")
		for _, obj := range []client.Object{service, slice} {
			Eventually(red.Client.Delete).WithContext(ctx).WithArguments(obj).Should(MatchError(ContainSubstring("the platform keeps the Services")))
		}
	})
})
