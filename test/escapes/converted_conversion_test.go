package escapes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// tampered makes what a hostile webhook responds: objects that were converted, and
// then changed.
var tampered = map[string]func(review *apiextensionsv1.ConversionReview, object *unstructured.Unstructured){
	"other-answer":    func(r *apiextensionsv1.ConversionReview, _ *unstructured.Unstructured) { r.Response.UID = "other" },
	"other-name":      func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) { o.SetName("other") },
	"other-namespace": func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) { o.SetNamespace("kube-system") },
	"other-uid":       func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) { o.SetUID("other") },
	"other-kind":      func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) { o.SetKind("Secret") },
	"other-group":     func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) { o.SetAPIVersion("apps/v1") },
	"other-version": func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) {
		o.SetAPIVersion(strings.Replace(o.GetAPIVersion(), "/v1", "/v2", 1))
	},
	"no-metadata": func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) { delete(o.Object, "metadata") },
	"no-labels": func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) {
		setMetadata(o, "labels", "all")
	},
	"platforms": func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{names.Converted: "other"})
	},
	"platforms-annotation": func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{names.Namespace: "other"})
	},
	"more": func(r *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) {
		r.Response.ConvertedObjects = append(r.Response.ConvertedObjects, runtime.RawExtension{Object: o})
	},
	"owners": func(_ *apiextensionsv1.ConversionReview, o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "default", UID: "other"}})
		o.SetFinalizers([]string{"example.com/held"})
		setMetadata(o, "managedFields", []any{})
	},
}

func setMetadata(o *unstructured.Unstructured, field string, value any) {
	Expect(unstructured.SetNestedField(o.Object, value, "metadata", field)).To(Succeed())
}

// convertHostile is the webhook of the attacks: the path says what it does.
func convertHostile(redirect func() string) kit.Answer {
	return func(w http.ResponseWriter, path string, review *apiextensionsv1.ConversionReview) {
		name := strings.TrimPrefix(path, "/")
		switch {
		case name == "sleep":
			time.Sleep(40 * time.Second)
		case name == "later":
			w.Header().Set("Retry-After", "3600")
			http.Error(w, "later", http.StatusTooManyRequests)
			return
		case name == "redirect":
			w.Header().Set("Location", redirect())
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		case name == "huge":
			for range 64 {
				if _, err := w.Write([]byte("{" + strings.Repeat(" ", 1<<20))); err != nil {
					return
				}
			}
			return
		case name == "protobuf":
			_, _ = w.Write(reviewInProtobuf())
			return
		case tampered[name] != nil:
			for _, raw := range review.Request.Objects {
				object := kit.Renamed(raw.Raw, review.Request.DesiredAPIVersion)
				review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: object})
				tampered[name](review, object)
			}
			kit.Respond(w, review)
			return
		}
		kit.Rename(w, review)
	}
}

var _ = Describe("The conversion webhooks of a converted tenant", Ordered, ContinueOnFailure, func() {
	const group = "convertible.example.com"
	var (
		alice, mallory *local.Tenant
		eve            *local.Tenant // has no policy
		hers, mine     *kit.ConversionWebhook
		admits         *kit.Webhook
		crd            *apiextensionsv1.CustomResourceDefinition
		redirect       string
	)
	gadget := func(version, name string) *unstructured.Unstructured {
		return kit.Gadget(group, version, "shop", name, map[string]any{"message": "a"})
	}
	// convert converts an object of a tenant, which is not stored.
	convert := func(ctx context.Context, t *local.Tenant) error {
		return t.Client.Create(ctx, gadget("v2", "converted"), client.DryRunAll)
	}
	calls := func(ctx context.Context, at *apiextensionsv1.WebhookClientConfig) {
		GinkgoHelper()
		kit.Edit(ctx, mallory.Client, crd, func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Conversion.Webhook.ClientConfig = at })
	}
	inSuper := func(t *local.Tenant) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + names.ConvertedGroup(t.Key()) + group}}
	}

	BeforeAll(func(ctx SpecContext) {
		converted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "Converted" }
		hooked := func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{AllowConversionWebhooks: true}
		}
		alice, mallory, eve = tenant(ctx, converted, hooked), tenant(ctx, converted, hooked), tenant(ctx, converted)
		for _, t := range []*local.Tenant{alice, mallory, eve} {
			shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			Eventually(func() error { return t.Client.Create(ctx, shop) }).Should(Succeed())
		}
		answer := convertHostile(func() string { return redirect })
		hers = kit.StartConversionWebhook(ctx, super, alice, "shop", "converter", answer)
		mine = kit.StartConversionWebhook(ctx, super, mallory, "shop", "converter", answer)
		patch := `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig","value":{"url":"https://169.254.169.254` +
			names.ConversionPath + mallory.Key() + `/"}}]`
		admits = kit.StartWebhook(ctx, super, mallory, "shop", "admits", func(string, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte(patch)}
		})
		crd = kit.Convertible(group, "v1", mine.At("/convert"))
		kit.Create(ctx, mallory.Client, crd)
		kit.Create(ctx, alice.Client, kit.Convertible(group, "v1", hers.At("/convert")))
		for _, t := range []*local.Tenant{alice, mallory} {
			Eventually(func() error { return convert(ctx, t) }).WithContext(ctx).WithTimeout(kit.Soon).Should(Succeed())
		}
	})

	BeforeEach(func(ctx SpecContext) {
		calls(ctx, mine.At("/convert"))
		Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).WithTimeout(kit.Soon).Should(Succeed())
		hers.Requests()
	})

	attack("the gateway's own network, by the URL of a webhook and by a redirect", "design: webhooks of one tenant for all", func(ctx SpecContext) {
		trap := listen("127.0.0.1:0", nil)
		places := []string{
			"https://" + trap.String(), fmt.Sprintf("https://localhost:%d", trap.Port()), fmt.Sprintf("https://[::ffff:127.0.0.1]:%d", trap.Port()),
			"https://169.254.169.254/latest/meta-data", "https://" + hers.Address, "https://kubernetes.default.svc", super.Config.Host,
			alice.Config.Host, "https://converter.shop.svc",
		}
		for _, place := range places {
			calls(ctx, &apiextensionsv1.WebhookClientConfig{URL: &place})
			Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(MatchError(ContainSubstring(notAllowed)), place)
		}
		for _, place := range places[:len(places)-1] { // the last one is her own Service then
			redirect = place
			calls(ctx, mine.At("/redirect"))
			Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(MatchError(ContainSubstring(notAllowed)), "redirected to "+place)
		}
		calls(ctx, &apiextensionsv1.WebhookClientConfig{URL: new("https://" + trap.String() + names.ConversionPath + mallory.Key() + "/")})
		Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).
			Should(MatchError(ContainSubstring("cannot be called at the moment")), "as the gateway's own path")
		trap.shouldBeUntouched()
		Expect(hers.Requests()).To(BeEmpty())
	}, NodeTimeout(6*time.Minute))

	attack("pods of others, by the Service of a webhook", "design: only the tenant's own Services", func(ctx SpecContext) {
		for _, namespace := range []string{alice.Super("shop"), mallory.Super("shop"), alice.Key(), "kube-system", "default"} {
			at := mine.At("/convert")
			at.Service.Namespace, at.CABundle = namespace, hers.CA
			calls(ctx, at)
			Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(MatchError(ContainSubstring("conversion webhook for")), namespace)
		}
		Expect(hers.Requests()).To(BeEmpty())
	})

	attack("other objects and those of others, by what a webhook answers", "idea: the answer is stored", func(ctx SpecContext) {
		for path := range tampered {
			calls(ctx, mine.At("/"+path))
			if path == "owners" {
				continue
			}
			Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(MatchError(And(
				ContainSubstring("conversion webhook for"), Not(Or(ContainSubstring(mallory.Key()), ContainSubstring("tenancy.x-k8s.io/converted-"))))), path)
		}
		calls(ctx, mine.At("/owners"))
		Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(Succeed())
		object := gadget("v2", "owned")
		Expect(mallory.Client.Create(ctx, object)).To(Succeed())
		stored := kit.Gadget(names.ConvertedGroup(mallory.Key())+group, "v1", mallory.Super("shop"), "owned", nil)
		Expect(kit.Get(ctx, super.Client, stored)).To(Succeed())
		Expect(stored.GetOwnerReferences()).To(BeEmpty())
		Expect(stored.GetFinalizers()).To(BeEmpty())
		Expect(stored.GetManagedFields()).NotTo(BeEmpty())
	}, NodeTimeout(6*time.Minute))

	attack("controllers of the super cluster, by a webhook that the policy does not allow", "issue: the ResourceQuota controller waits for a resource that cannot be listed", func(ctx SpecContext) {
		const conversion = `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://example.com/"}}}`
		forbidden := And(MatchError(apierrors.IsForbidden, "forbidden"), MatchError(ContainSubstring("spec.policy.allowConversionWebhooks")))
		hooked := kit.Convertible("closed.example.com", "v1", &apiextensionsv1.WebhookClientConfig{URL: new("https://example.com/")})
		applied, err := json.Marshal(map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": hooked.Name}, "spec": hooked.Spec,
		})
		Expect(err).NotTo(HaveOccurred())
		apply, owner := client.RawPatch(types.ApplyPatchType, applied), client.FieldOwner("eve")
		Expect(eve.Client.Create(ctx, hooked.DeepCopy())).To(forbidden)
		Expect(eve.Client.Patch(ctx, hooked.DeepCopy(), apply, owner, client.ForceOwnership)).To(forbidden)
		plain := hooked.DeepCopy()
		plain.Spec.Conversion = nil
		kit.Create(ctx, eve.Client, plain)
		changed := plain.DeepCopy()
		changed.Spec.Conversion = hooked.Spec.Conversion
		Expect(eve.Client.Update(ctx, changed)).To(forbidden)
		Expect(eve.Client.Patch(ctx, plain.DeepCopy(), apply, owner, client.ForceOwnership)).To(forbidden)
		for mediaType, body := range map[types.PatchType]string{
			types.JSONPatchType: `[{"op":"add","path":"/spec/conversion","value":` + conversion + `}]`, types.MergePatchType: `{"spec":{"conversion":` + conversion + `}}`,
			types.StrategicMergePatchType: `{"spec":{"conversion":` + conversion + `}}`,
		} {
			patch := client.RawPatch(mediaType, []byte(body))
			Expect(eve.Client.Patch(ctx, plain.DeepCopy(), patch)).To(forbidden, string(mediaType))
			_ = eve.Client.Status().Patch(ctx, plain.DeepCopy(), patch) // an apiserver ignores the spec
		}
		Expect(kit.Get(ctx, eve.Client, plain)).To(Succeed())
		Expect(plain.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))
	})

	attack("controllers of the super cluster, by objects in a version that the CRD does not have any more", "issue: the ResourceQuota controller waits for a resource that cannot be listed", func(ctx SpecContext) {
		const group = "gone.example.com"
		versioned := kit.Convertible(group, "v1", nil)
		versioned.Spec.Conversion = nil
		kit.Create(ctx, eve.Client, versioned)
		object := kit.Gadget(group, "v1", "shop", "stored", nil)
		Eventually(func() error { return eve.Client.Create(ctx, object) }).WithContext(ctx).WithTimeout(kit.Soon).Should(Succeed())
		kit.Edit(ctx, eve.Client, versioned, func(c *apiextensionsv1.CustomResourceDefinition) {
			for i := range c.Spec.Versions {
				c.Spec.Versions[i].Storage = c.Spec.Versions[i].Name == "v2"
			}
		})
		Expect(versioned.Status.StoredVersions).To(ConsistOf("v1", "v2"))
		versioned.Status.StoredVersions = []string{"v2"}
		Expect(eve.Client.Status().Update(ctx, versioned.DeepCopy())).To(MatchError(ContainSubstring("stays in status.storedVersions")))
		for mediaType, body := range map[types.PatchType]string{
			types.JSONPatchType: `[{"op":"remove","path":"/status/storedVersions/0"}]`, types.MergePatchType: `{"status":{"storedVersions":["v2"]}}`,
		} {
			Expect(eve.Client.Status().Patch(ctx, versioned.DeepCopy(), client.RawPatch(mediaType, []byte(body)))).To(
				MatchError(ContainSubstring("stays in status.storedVersions")), string(mediaType))
		}
		Expect(kit.Get(ctx, eve.Client, versioned)).To(Succeed())
		versioned.Spec.Versions = slices.DeleteFunc(versioned.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == "v1"
		})
		Expect(eve.Client.Update(ctx, versioned)).To(MatchError(apierrors.IsInvalid, "invalid"))
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(names.ConvertedGroup(eve.Key()) + group + "/v2")
		list.SetKind("GadgetList")
		Consistently(func() error { return super.Client.List(ctx, list) }).WithContext(ctx).Should(Succeed())
	})

	attack("the memory of the gateway, by a webhook that answers without an end", "idea: the answer is read as a whole", func(ctx SpecContext) {
		calls(ctx, mine.At("/huge"))
		Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(MatchError(ContainSubstring("answers with more than")))
	})

	attack("the memory of the gateway, by a webhook that answers in protobuf", "idea: upstream's decoder looks at what it gets", func(ctx SpecContext) {
		calls(ctx, mine.At("/protobuf"))
		Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(MatchError(ContainSubstring("answers in protobuf")))
	})

	attack("the webhooks of others, by calling the gateway as the super cluster does", "idea: the endpoint is open to pods", func(ctx SpecContext) {
		transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
		Expect(err).NotTo(HaveOccurred())
		for _, path := range []string{
			"", alice.Key(), alice.Key() + "/" + crd.Name, alice.Key() + "/" + crd.Name + "/guess/e30", alice.Key() + "/" + crd.Name + "/" + strings.Repeat("A", 43) + "/e30",
			alice.Key() + "/../" + mallory.Key() + "/" + crd.Name, "unknown/" + crd.Name + "/guess/e30", alice.Key() + "/%2e%2e/" + crd.Name,
		} {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+kit.DoorOf(mallory.Config).Address+names.ConversionPath+path,
				strings.NewReader(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"a"}}`))
			Expect(err).NotTo(HaveOccurred())
			response, err := transport.RoundTrip(r)
			Expect(err).NotTo(HaveOccurred())
			Expect(response.Body.Close()).To(Succeed())
			Expect(response.StatusCode).To(Equal(http.StatusNotFound), path)
		}
		Expect(hers.Requests()).To(BeEmpty())
	})

	attack("the super cluster's own calls, by an admission webhook of the tenant that changes a CRD", "idea: a mutation goes around the gateway", func(ctx SpecContext) {
		kit.Temporarily(ctx, mallory.Client, kit.Mutating("crds", admits.At("/"), kit.ForRequests("apiextensions.k8s.io", "customresourcedefinitions",
			admissionregistrationv1.OperationAll)))
		Eventually(func() error {
			return mallory.Client.Create(ctx, kit.Convertible("mutated.example.com", "v1", mine.At("/convert")), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("cannot change spec.conversion.webhook.clientConfig")))
		found := inSuper(mallory)
		Expect(kit.Get(ctx, super.Client, found)).To(Succeed())
		Expect(*found.Spec.Conversion.Webhook.ClientConfig.URL).To(HavePrefix("https://" + kit.DoorOf(mallory.Config).Address + names.ConversionPath))
	})

	attack("the time of others, by webhooks that sleep, or ask to be called later", "issue: a slow webhook beside another tenant", func(ctx SpecContext) {
		calls(ctx, mine.At("/later"))
		Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).Should(MatchError(ContainSubstring("later")))
		calls(ctx, mine.At("/sleep"))
		var work sync.WaitGroup
		errs, began := make([]error, 40), time.Now()
		for i := range errs {
			work.Go(func() { errs[i] = convert(ctx, mallory) })
		}
		for range 50 {
			Expect(convert(ctx, alice)).To(Succeed())
		}
		AddReportEntry("50 conversions of another tenant", time.Since(began).String())
		Expect(time.Since(began)).To(BeNumerically("<", kit.Soon))
		work.Wait()
		Expect(errs).To(HaveEach(HaveOccurred()))
		AddReportEntry("40 conversions that sleep", time.Since(began).String())
		Expect(time.Since(began)).To(BeNumerically("<", 2*kit.Soon), "all at once, each until its timeout")
		calls(ctx, mine.At("/convert"))
		recovering := time.Now()
		Eventually(func() error { return convert(ctx, mallory) }).WithContext(ctx).WithTimeout(3*time.Minute).
			Should(Succeed(), "the time that they took is paid back")
		AddReportEntry("conversions after that", time.Since(recovering).String())
	}, NodeTimeout(kit.Longest))
})
