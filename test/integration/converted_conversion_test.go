package integration

import (
	"encoding/json"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The conversion webhook of a converted tenant", Ordered, func() {
	const group = "convertible.example.com"
	var (
		red     *local.Tenant
		webhook *kit.ConversionWebhook
		decides *kit.Webhook
		crd     *apiextensionsv1.CustomResourceDefinition
	)
	gadget := func(version, name string, spec map[string]any) *unstructured.Unstructured {
		return kit.Gadget(group, version, "shop", name, spec)
	}
	gadgets := func(version string) *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/" + version)
		list.SetKind("GadgetList")
		return list
	}
	has := func(field, value string) OmegaMatcher {
		return HaveField("Object", HaveKeyWithValue("spec", HaveKeyWithValue(field, value)))
	}
	inSuper := func() *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + names.ConvertedGroup(red.Key()) + group}}
	}
	// established waits until the versions are served, and converted.
	established := func(ctx SpecContext, object *unstructured.Unstructured) {
		GinkgoHelper()
		Eventually(func() error { return red.Client.Create(ctx, object.DeepCopy(), client.DryRunAll) }).WithContext(ctx).WithTimeout(2 * kit.Soon).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		red = kit.Tenant(ctx, super, kit.VirtualCluster(converted, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{AllowConversionWebhooks: true}
		}))
		Eventually(func() error { return red.Client.Create(ctx, namespaceOf("shop")) }).Should(Succeed())
		webhook = kit.StartConversionWebhook(ctx, super, red, "shop", "converter", func(w http.ResponseWriter, path string, review *apiextensionsv1.ConversionReview) {
			if path == "/fail" {
				review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "this webhook converts nothing"}
				kit.Respond(w, review)
				return
			}
			kit.Rename(w, review)
		})
		decides = kit.StartWebhook(ctx, super, red, "shop", "admission", respond)
		crd = kit.Convertible(group, "v1", webhook.At("/convert"))
		kit.Create(ctx, red.Client, crd)
		established(ctx, gadget("v2", "probe", nil))
	})

	It("is read as the tenant has written it, and the super cluster calls the gateway", func(ctx SpecContext) {
		Expect(kit.Get(ctx, red.Client, crd)).To(Succeed())
		Expect(crd.Spec.Conversion.Webhook.ClientConfig).To(Equal(webhook.At("/convert")))
		Expect(crd.Spec.Conversion.Webhook.ConversionReviewVersions).To(Equal([]string{"v1"}))
		super := super.Client
		platforms := inSuper()
		Expect(kit.Get(ctx, super, platforms)).To(Succeed())
		Expect(platforms.Spec.Conversion.Webhook.ClientConfig.Service).To(BeNil())
		Expect(*platforms.Spec.Conversion.Webhook.ClientConfig.URL).To(HavePrefix("https://" + kit.DoorOf(red.Config).Address + names.ConversionPath))
	})

	It("converts what is written in one version and read in another, in the tenant's names", func(ctx SpecContext) {
		webhook.Requests()
		first := gadget("v1", "first", map[string]any{"text": "hello"})
		first.SetLabels(map[string]string{"a": "b"})
		kit.Create(ctx, red.Client, first)
		second := gadget("v2", "second", map[string]any{"message": "bye"})
		kit.Create(ctx, red.Client, second)
		Expect(second).To(has("message", "bye"))
		read := gadget("v2", "first", nil)
		Expect(kit.Get(ctx, red.Client, read)).To(Succeed())
		Expect(read).To(has("message", "hello"))
		Expect(read.GetLabels()).To(Equal(map[string]string{"a": "b"}))
		Expect(read.GetUID()).To(Equal(first.GetUID()))
		read = gadget("v1", "second", nil)
		Expect(kit.Get(ctx, red.Client, read)).To(Succeed())
		Expect(read).To(has("text", "bye"))
		requests := webhook.Requests()
		Expect(requests).To(ContainElement(HaveField("DesiredAPIVersion", group+"/v2")))
		Expect(must(json.Marshal(requests))).To(And(ContainSubstring(`"namespace":"shop"`),
			Not(Or(ContainSubstring(red.Key()), ContainSubstring(names.ConvertedGroup(red.Key())), ContainSubstring(names.Domain)))))
	})

	It("converts for admission webhooks and policies that name another version", func(ctx SpecContext) {
		inVersion := func(version string) []admissionregistrationv1.RuleWithOperations {
			return inForm(schema.GroupVersion{Group: group, Version: version}, "gadgets", onCreate)
		}
		patch := decides.At(patching(`[{"op":"replace","path":"/spec/text","value":"patched"}]`))
		kit.Temporarily(ctx, red.Client, kit.Mutating("texts", patch, inVersion("v1")))
		Eventually(func(g Gomega) {
			written := gadget("v2", "admitted", map[string]any{"message": "sent"})
			g.Expect(red.Client.Create(ctx, written, client.DryRunAll)).To(Succeed())
			g.Expect(written).To(has("message", "patched"))
		}).Should(Succeed())
		Eventually(decides.Calls).Should(ContainElement(And(HaveField("Kind.Version", "v1"), HaveField("RequestKind.Version", "v2"),
			HaveField("Object.Raw", ContainSubstring(`"text":"sent"`)))))
		policy := policyFor("texts", "object.spec.text != 'patched'")
		policy.Spec.MatchConstraints.ResourceRules = []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: inVersion("v1")[0]}}
		kit.Temporarily(ctx, red.Client, policy)
		kit.Temporarily(ctx, red.Client, denyBy("texts"))
		Eventually(func() error {
			return red.Client.Create(ctx, gadget("v2", "admitted", map[string]any{"message": "sent"}), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("failed expression: object.spec.text != 'patched'")))
	})

	It("converts lists, watches and patches", func(ctx SpecContext) {
		list := gadgets("v2")
		Expect(red.Client.List(ctx, list, client.InNamespace("shop"))).To(Succeed())
		Expect(list.Items).To(ConsistOf(has("message", "hello"), has("message", "bye")))
		watching, err := red.Client.Watch(ctx, gadgets("v2"), client.InNamespace("shop"), &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watching.Stop)
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"c":"d"}},"spec":{"text":"patched"}}`))
		Expect(red.Client.Patch(ctx, gadget("v1", "first", nil), patch)).To(Succeed())
		Eventually(watching.ResultChan()).WithContext(ctx).Should(Receive(And(
			HaveField("Type", watch.Modified), HaveField("Object", has("message", "patched")))))
	})

	It("changes by each patch, and by an apply of a part", func(ctx SpecContext) {
		path := "/metadata/annotations"
		for mediaType, body := range map[types.PatchType]string{
			types.MergePatchType:          `{"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"path":"/merged"}}}}}}`,
			types.StrategicMergePatchType: `{"spec":{"conversion":{"webhook":{"clientConfig":{"service":{"path":"/merged"}}}}}}`,
			types.JSONPatchType:           `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig/service/path","value":"/merged"},{"op":"add","path":"` + path + `","value":{"a":"b"}}]`,
		} {
			kit.Edit(ctx, red.Client, crd, func(c *apiextensionsv1.CustomResourceDefinition) {
				c.Spec.Conversion.Webhook.ClientConfig = webhook.At("/convert")
			})
			Expect(red.Client.Patch(ctx, crd, client.RawPatch(mediaType, []byte(body)))).To(Succeed(), string(mediaType))
			Expect(crd.Spec.Conversion.Webhook.ClientConfig).To(Equal(webhook.At("/merged")), string(mediaType))
		}
		apply := func(manager, clientConfig string) error {
			body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + crd.Name + `"},` +
				`"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":` + clientConfig + `}}}}`
			return red.Client.Patch(ctx, crd, client.RawPatch(types.ApplyPatchType, []byte(body)), client.FieldOwner(manager), client.ForceOwnership)
		}
		Expect(apply("deployer", `{"service":{"namespace":"shop","name":"converter","path":"/applied"}}`)).To(Succeed())
		Expect(crd.Spec.Conversion.Webhook.ClientConfig).To(Equal(webhook.At("/applied")), "the CA bundle is another manager's")
		other := must(json.Marshal(must(pki.NewAuthority("other", time.Hour, time.Now())).CertPEM))
		Expect(apply("injector", `{"caBundle":`+string(other)+`}`)).To(Succeed())
		Expect(crd.Spec.Conversion.Webhook.ClientConfig.Service).To(Equal(webhook.At("/applied").Service))
		Expect(must(json.Marshal(crd.Spec.Conversion.Webhook.ClientConfig.CABundle))).To(Equal(other))
		Expect(apply("deployer", `{"service":{"namespace":"shop","name":"converter","path":"/again"}}`)).To(Succeed())
		Expect(must(json.Marshal(crd.Spec.Conversion.Webhook.ClientConfig.CABundle))).To(Equal(other))
		Expect(apply("injector", string(must(json.Marshal(webhook.At("/convert")))))).To(Succeed())
		Expect(crd.Spec.Conversion.Webhook.ClientConfig).To(Equal(webhook.At("/convert")))
	})

	It("is validated as in a cluster", func(ctx SpecContext) {
		for name, change := range map[string]func(*apiextensionsv1.WebhookClientConfig){
			"exactly one of url or service": func(c *apiextensionsv1.WebhookClientConfig) { c.Service = nil },
			"'https' is the only allowed":   func(c *apiextensionsv1.WebhookClientConfig) { c.Service, c.URL = nil, new("http://example.com") },
			"must start with a '/'":         func(c *apiextensionsv1.WebhookClientConfig) { c.Service.Path = new("convert") },
			"caBundle":                      func(c *apiextensionsv1.WebhookClientConfig) { c.CABundle = []byte("none") },
		} {
			wrong := kit.Convertible("wrong.example.com", "v1", webhook.At("/convert"))
			change(wrong.Spec.Conversion.Webhook.ClientConfig)
			Expect(red.Client.Create(ctx, wrong)).To(MatchError(ContainSubstring(name)), name)
		}
	})

	It("converts what is stored after the stored version has changed", func(ctx SpecContext) {
		kit.Edit(ctx, red.Client, crd, func(c *apiextensionsv1.CustomResourceDefinition) {
			for i := range c.Spec.Versions {
				c.Spec.Versions[i].Storage = c.Spec.Versions[i].Name == "v2"
			}
		})
		Eventually(func(g Gomega) {
			object := gadget("v1", "third", map[string]any{"text": "stored in v2"})
			g.Expect(client.IgnoreAlreadyExists(red.Client.Create(ctx, object))).To(Succeed())
			read := gadget("v2", "third", nil)
			g.Expect(kit.Get(ctx, red.Client, read)).To(Succeed())
			g.Expect(read).To(has("message", "stored in v2"))
		}).WithContext(ctx).Should(Succeed())
		for _, version := range []string{"v1", "v2"} {
			Eventually(func(g Gomega) {
				list := gadgets(version)
				g.Expect(red.Client.List(ctx, list)).To(Succeed())
				g.Expect(list.Items).To(HaveLen(3))
			}).WithContext(ctx).Should(Succeed(), version)
		}
		read := gadget("v2", "second", nil)
		Expect(kit.Get(ctx, red.Client, read)).To(Succeed())
		Expect(read).To(has("message", "bye"))
	})

	It("reports the reason for which it does not convert", func(ctx SpecContext) {
		change := func(at *apiextensionsv1.WebhookClientConfig) {
			GinkgoHelper()
			kit.Edit(ctx, red.Client, crd, func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Conversion.Webhook.ClientConfig = at })
		}
		create := func() error {
			return red.Client.Create(ctx, gadget("v1", "fourth", map[string]any{"text": "unconverted"}), client.DryRunAll)
		}
		change(webhook.At("/fail"))
		Eventually(create).WithContext(ctx).Should(MatchError(And(ContainSubstring("conversion webhook for "+group+"/v1, Kind=Gadget failed"),
			ContainSubstring("this webhook converts nothing"))))
		gone := webhook.At("/convert")
		gone.Service.Name = "gone"
		change(gone)
		Eventually(create).WithContext(ctx).Should(MatchError(And(ContainSubstring(`https://gone.shop.svc:443/convert`), ContainSubstring("not found"),
			Not(ContainSubstring(names.ConversionPath)))))
		change(webhook.At("/convert"))
		Eventually(create).WithContext(ctx).Should(Succeed())
	})

	It("leads to the gateway again if the super cluster's CRD was changed", func(ctx SpecContext) {
		platforms := inSuper()
		Expect(kit.Get(ctx, super.Client, platforms)).To(Succeed())
		want := platforms.Spec.Conversion.Webhook.ClientConfig.DeepCopy()
		kit.Edit(ctx, super.Client, platforms, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		})
		Eventually(kit.Read(ctx, super.Client, platforms)).WithContext(ctx).Should(
			HaveField("Spec.Conversion.Webhook.ClientConfig.CABundle", Not(BeEmpty())))
		Expect(*platforms.Spec.Conversion.Webhook.ClientConfig.URL).To(Equal(*want.URL))
	})

	It("stays when the policy does not allow it any more, and cannot be added again", func(ctx SpecContext) {
		other := kit.Convertible("other.example.com", "v1", webhook.At("/convert"))
		kit.Create(ctx, red.Client, other)
		kit.Edit(ctx, super.Client, red.VC.DeepCopy(), func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Policy = nil })
		another := kit.Convertible("another.example.com", "v1", webhook.At("/convert"))
		forbidden := And(MatchError(apierrors.IsForbidden, "forbidden"), MatchError(ContainSubstring(`"`+another.Name+
			`" is forbidden: the policy of the tenant does not allow conversion webhooks`)))
		Eventually(func() error { return red.Client.Create(ctx, another.DeepCopy(), client.DryRunAll) }).WithContext(ctx).Should(forbidden)
		kit.Edit(ctx, red.Client, crd, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion.Webhook.ClientConfig = webhook.At("/again")
		})
		established(ctx, gadget("v1", "probe", nil))
		Eventually(webhook.Requests).WithContext(ctx).ShouldNot(BeEmpty())
		was := other.Spec.Conversion
		kit.Edit(ctx, red.Client, other, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		})
		Eventually(func() error {
			Expect(kit.Get(ctx, red.Client, other)).To(Succeed())
			other.Spec.Conversion = was
			return red.Client.Update(ctx, other, client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(red.Client.Delete(ctx, other)).To(Succeed())
	})

	It("does not keep the tenant from being deleted", func(ctx SpecContext) {
		gone := webhook.At("/convert")
		gone.Service.Name = "gone"
		kit.Edit(ctx, red.Client, crd, func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Conversion.Webhook.ClientConfig = gone })
		held := gadget("v2", "second", nil)
		Eventually(func() error { return kit.Get(ctx, red.Client, held) }).WithContext(ctx).ShouldNot(Succeed(), "it is stored in v1")
		Expect(super.Client.Delete(ctx, red.VC)).To(Succeed())
		Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, inSuper()).WithTimeout(recovery).
			Should(MatchError(apierrors.IsNotFound, "not found"))
	}, NodeTimeout(2*recovery))
})
