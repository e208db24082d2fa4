package escapes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Changes of a converted tenant's CRDs", Ordered, func() {
	const group = "example.com"
	var alice, mallory *local.Tenant
	inSuper := func(t *local.Tenant) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + names.ConvertedGroup(t.Key()) + group}}
	}
	serving := func(group string) *apiextensionsv1.CustomResourceDefinition {
		crd := kit.Convertible(group, "v1", nil)
		crd.Spec.Conversion = nil
		return crd
	}

	BeforeAll(func(ctx SpecContext) {
		converted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted }
		alice, mallory = tenant(ctx, converted), tenant(ctx, converted)
		for _, t := range []*local.Tenant{alice, mallory} {
			Eventually(func() error { return t.Client.Create(ctx, serving(group)) }).WithContext(ctx).Should(Succeed())
		}
	})

	attack("controllers of the super cluster, by CRDs that are changed and deleted in a loop", "issue: the ResourceQuota controller pauses while it discovers all resources again", func(ctx SpecContext) {
		const path = crdsPath + "/gadgets." + group
		// Clients would repeat the request after a 429.
		send := func(ctx context.Context, method, path, mediaType, body string) (code int, text string) {
			return request(ctx, mallory.Config, method, path, strings.NewReader(body), "Content-Type", mediaType)
		}
		served, changes, code, text := true, 0, 0, ""
		change := func() {
			GinkgoHelper()
			patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/1/served","value":%t}]`, !served)
			code, text = send(ctx, http.MethodPatch, path, string(types.JSONPatchType), patch)
			Expect(code).To(BeElementOf(http.StatusOK, http.StatusTooManyRequests), text)
			if code == http.StatusOK {
				served = !served
			}
		}
		for code != http.StatusTooManyRequests && changes < 2*resources.ChurnBurst {
			change()
			changes++
		}
		Expect(code).To(Equal(http.StatusTooManyRequests))
		Expect(text).To(And(ContainSubstring("try again in"), ContainSubstring("retryAfterSeconds")))
		AddReportEntry("changes before the first 429", fmt.Sprint(changes-1))
		Expect(changes).To(BeNumerically("<=", resources.ChurnBurst+20), "the gateway sees changes a moment later")

		// exhausted makes changes until none is possible for some seconds: one is every ten seconds, and the time until the next one may be short.
		exhausted := func() {
			GinkgoHelper()
			Eventually(func() int32 {
				change()
				var status metav1.Status
				if code == http.StatusOK || json.Unmarshal([]byte(text), &status) != nil || status.Details == nil {
					return 0
				}
				return status.Details.RetryAfterSeconds
			}).WithContext(ctx).Should(BeNumerically(">", 5))
		}
		before, after := inSuper(mallory), inSuper(mallory)
		for _, each := range []struct{ method, path, mediaType, body string }{
			{http.MethodDelete, path, "application/json", ""},
			{http.MethodDelete, crdsPath, "application/json", ""},
			{http.MethodPut, path, "application/json", `{"metadata":{"name":"gadgets.example.com"}}`},
			{http.MethodPatch, path, string(types.MergePatchType), `{"spec":{"versions":[]}}`},
			{http.MethodPatch, path, string(types.StrategicMergePatchType), `{"spec":{"versions":[]}}`},
			{http.MethodPatch, path + "?fieldManager=m&force=true", string(types.ApplyYAMLPatchType), `{"spec":{"versions":[]}}`},
			{http.MethodPatch, path + "/status", string(types.MergePatchType), `{"status":{"conditions":[]}}`},
		} {
			exhausted()
			Expect(kit.Get(ctx, super.Client, before)).To(Succeed())
			code, text := send(ctx, each.method, each.path, each.mediaType, each.body)
			Expect(code).To(Equal(http.StatusTooManyRequests), "%v: %s", each, text)
			Expect(kit.Get(ctx, super.Client, after)).To(Succeed())
			Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "%v", each)
		}
		Expect(mallory.Client.Create(ctx, serving("more.example.com"))).To(Succeed(), "creations are limited by their number")

		Expect(alice.Client.Delete(ctx, serving(group))).To(Succeed(), "others have a limit of their own")
		kit.ShouldVanish(ctx, super.Client, inSuper(alice))
		Expect(super.Client.Delete(ctx, mallory.VC)).To(Succeed())
		Eventually(func() error { return kit.Get(ctx, super.Client, inSuper(mallory)) }).WithContext(ctx).WithTimeout(4*kit.Soon).
			ShouldNot(Succeed(), "the platform deletes the tenant's CRDs")
	}, NodeTimeout(kit.Longest))
})
