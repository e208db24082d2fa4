package integration

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The modes of network and device kinds", func() {
	const ns = "modes"
	carry := func(mode tenancyv1alpha1.SyncMode, kinds ...tenancyv1alpha1.OptionalKind) func(*tenancyv1alpha1.VirtualCluster) {
		return func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{}
			for _, kind := range kinds {
				vc.Spec.Sync.Kinds = append(vc.Spec.Sync.Kinds, tenancyv1alpha1.KindSync{Kind: kind, Mode: mode})
			}
		}
	}
	meta := metav1.ObjectMeta{Namespace: ns, Name: "web"}

	It("stop the sync of a kind that is disabled", func(ctx SpecContext) {
		kinds := []tenancyv1alpha1.OptionalKind{"Endpoints", "EndpointSlice", "Ingress", "NetworkPolicy", "PodDisruptionBudget"}
		offerCertified(ctx)
		red := tenant(ctx, carry(tenancyv1alpha1.SyncOff, kinds...))
		web := withCertificate(ns, "web", "cert")
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
		objects := []client.Object{
			byHand(ns, "web", "192.0.2.1"), kit.EndpointSlice(ns, "web", "web", "192.0.2.1"), web, secret(ns, "cert", nil),
			&networkingv1.NetworkPolicy{ObjectMeta: meta}, budget,
		}
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		kit.Create(ctx, red.Client, objects...)
		kit.Create(ctx, red.Client, service(ns, "last"))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, service(ns, "last")))
		for _, obj := range objects {
			Consistently(kit.Get).WithContext(ctx).WithArguments(super.Client, kit.SuperOf(red, obj)).WithTimeout(kit.Quiet / 5).
				Should(MatchError(apierrors.IsNotFound, "not found"))
		}

		kit.Edit(ctx, super.Client, red.VC, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Sync = nil })
		for _, obj := range objects {
			kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, obj))
		}
		kit.Edit(ctx, super.Client, red.VC, carry(tenancyv1alpha1.SyncOff, kinds...))
		for _, obj := range objects {
			kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, obj))
		}
	})

	It("can include all device claims of the tenant, except those created for pods", func(ctx SpecContext) {
		offerPublicly(ctx, deviceClass("net-public"))
		red := tenant(ctx, carry(tenancyv1alpha1.SyncAll, "ResourceClaim", "ResourceClaimTemplate"))
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		own, made, template := deviceClaim(ns, "own", "net-public"), deviceClaim(ns, "made", "net-public"),
			&resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: asking("net-public")}}
		p := kit.Pod(ns, "web")
		kit.Create(ctx, red.Client, p)
		made.Annotations = map[string]string{"resource.kubernetes.io/pod-claim-name": "device"}
		made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}
		kit.Create(ctx, red.Client, made, own, template)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, own))
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, template))
		kit.ShouldStayAbsent(ctx, super.Client, kit.SuperOf(red, made))

		kit.Edit(ctx, super.Client, red.VC, carry(tenancyv1alpha1.SyncOff, "ResourceClaim", "ResourceClaimTemplate"))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, own))
		kit.ShouldVanish(ctx, super.Client, kit.SuperOf(red, template))
	})
})
