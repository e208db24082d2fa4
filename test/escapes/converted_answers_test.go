package escapes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Each answer is read by the gateway, in which all converted tenants are. After it,
// another one has to be served.
var _ = Describe("The answers of the webhooks of a converted tenant", Ordered, func() {
	const ns = "shop"
	var (
		alice, mallory *local.Tenant
		mine           *kit.Webhook
		turn           atomic.Value // of type http.HandlerFunc
	)
	create := kit.ForRequests("", "configmaps", admissionregistrationv1.Create)
	settings := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}
	}
	// refusalAfter returns why an answer does not let mallory create a ConfigMap.
	refusalAfter := func(ctx context.Context, answer http.HandlerFunc) error {
		GinkgoHelper()
		turn.Store(answer)
		return refusal(ctx, mallory, settings())
	}

	BeforeAll(func(ctx SpecContext) {
		converted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "Converted" }
		alice, mallory = tenant(ctx, converted), tenant(ctx, converted)
		for _, t := range []*local.Tenant{alice, mallory} {
			Eventually(func() error { return t.Client.Create(ctx, kit.Namespace(ns)) }).WithContext(ctx).Should(Succeed())
		}
		mine = kit.StartAnswering(ctx, super, mallory, ns, "webhook", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			turn.Load().(http.HandlerFunc)(w, r)
		}))
		kit.Temporarily(ctx, mallory.Client, kit.Mutating("answers", mine.At("/"), create))
	})
	AfterEach(func(ctx SpecContext) { Expect(alice.Client.Create(ctx, settings(), client.DryRunAll)).To(Succeed()) })

	attack("the memory of the gateway, by an answer in protobuf, also if it is called JSON", "idea: upstream's decoder looks at what it gets", func(ctx SpecContext) {
		for _, mediaType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			Expect(refusalAfter(ctx, answerWith(mediaType, reviewInProtobuf()))).To(MatchError(ContainSubstring("answers in protobuf")))
		}
	})

	attack("the memory of the gateway, by an answer without an end", "idea: upstream's client reads an answer as a whole", func(ctx SpecContext) {
		const most = 100 // megabytes, some of which are on their way
		var sent atomic.Int32
		Expect(refusalAfter(ctx, endlessAnswer(&sent))).To(MatchError(ContainSubstring("answers with more than")))
		Expect(sent.Load()).To(BeNumerically("<", most))
	})

	attack("the time of the gateway, by a patch that nests an object", "idea: a patch is text in an answer", func(ctx SpecContext) {
		for _, patch := range nestingPatches("/nested") {
			Expect(refusalAfter(ctx, patchWith(patch))).To(MatchError(ContainSubstring("nested deeper than 1000 levels")))
		}
		const levels = 200
		value := strings.Repeat(`{"a":`, levels) + "{}" + strings.Repeat("}", levels)
		Expect(refusalAfter(ctx, patchWith(`[{"op":"add","path":"/nested","value":`+value+`}]`))).To(
			MatchError(ContainSubstring("nested more than 100 levels deep")))
	})

	attack("the time of the gateway, by a patch of 10,001 operations", "idea: each insert moves what was inserted before", func(ctx SpecContext) {
		Expect(refusalAfter(ctx, patchWith(inserts()))).To(MatchError(ContainSubstring("the patch has 10001 operations")))
	})

	attack("the memory of the gateway, by a patch that copies an object into itself", "idea: each copy doubles the object", func(ctx SpecContext) {
		Expect(refusalAfter(ctx, patchWith(copies()))).To(MatchError(ContainSubstring("accumulated size increase of copy")))
	})

	attack("the memory of the gateway, by a policy that copies an object into itself", "idea: each copy doubles the object", func(ctx SpecContext) {
		const times = 20
		mutateBy(ctx, mallory, "copies", create[0], admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeJSONPatch,
			JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(
				"lists.range(%d).map(i, JSONPatch{op: 'copy', from: '/metadata', path: '/metadata/x' + string(i)})", times)},
		})
		Expect(refusalAfter(ctx, patchWith("[]"))).To(MatchError(ContainSubstring("accumulated size increase of copy")))
	})
})
