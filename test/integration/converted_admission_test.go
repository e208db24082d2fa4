package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	onCreate  = admissionregistrationv1.Create
	onUpdate  = admissionregistrationv1.Update
	onDelete  = admissionregistrationv1.Delete
	onConnect = admissionregistrationv1.Connect
)

// respond is the webhook of the specs: the path says what it does.
func respond(path string, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	switch {
	case path == "/deny":
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "this webhook denies all"}}
	case path == "/slow":
		time.Sleep(3 * time.Second)
	case strings.HasPrefix(path, "/patch/"):
		return &admissionv1.AdmissionResponse{
			Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte(strings.TrimPrefix(path, "/patch/")),
			Warnings: []string{"it was patched"},
		}
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// forLabel makes a webhook one for objects with a label.
func forLabel(label string) func(*admissionregistrationv1.ValidatingWebhook) {
	return func(w *admissionregistrationv1.ValidatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"webhook": label}}
	}
}

func patching(operations string) string { return "/patch/" + operations }

var _ = Describe("The admission webhooks of a converted tenant", Ordered, ContinueOnFailure, func() {
	var (
		red, blue *local.Tenant
		webhook   *kit.Webhook
	)

	BeforeAll(func(ctx SpecContext) {
		red, blue = kit.Tenant(ctx, super, kit.VirtualCluster(converted)), kit.Tenant(ctx, super, kit.VirtualCluster(converted))
		for _, t := range []*local.Tenant{red, blue} {
			Eventually(func() error { return t.Client.Create(ctx, namespaceOf("shop")) }).Should(Succeed())
		}
		webhook = kit.StartWebhook(ctx, super, red, "shop", "webhook", respond)
	})

	BeforeEach(func() { webhook.Calls() })

	// denied waits until a request is denied with an error: webhooks have an effect a
	// moment later, and the first one of a tenant is not ready at once.
	denied := func(ctx context.Context, create func() error, matches OmegaMatcher) {
		GinkgoHelper()
		Eventually(create).WithContext(ctx).Should(matches)
	}

	It("deny what the tenant creates, in the tenant's names", func(ctx SpecContext) {
		configuration := kit.Validating("deny", webhook.At("/deny"), kit.ForRequests("", "configmaps", onCreate), forLabel("deny"))
		began := time.Now()
		kit.Temporarily(ctx, red.Client, configuration)
		object := configMap("shop", "denied", nil)
		object.Labels = map[string]string{"webhook": "deny"}
		denied(ctx, func() error { return red.Client.Create(ctx, object.DeepCopy(), client.DryRunAll) },
			MatchError(`admission webhook "deny.example.com" denied the request: this webhook denies all`))
		AddReportEntry("effective after", time.Since(began).String())
		Expect(time.Since(began)).To(BeNumerically("<", 30*time.Second), "it does not wait for what the gateway does every minute")
		call := webhook.Calls()[0]
		Expect(call.Namespace).To(Equal("shop"))
		Expect(*call.DryRun).To(BeTrue())
		Expect(call.UserInfo.Groups).To(ContainElement("system:masters"))
		Expect(call.UserInfo.Extra).NotTo(HaveKey(ContainSubstring("tenancy")))
		Expect(must(json.Marshal(call))).NotTo(Or(ContainSubstring(red.Key()), ContainSubstring("tenancy.x-k8s.io")))
		Expect(blue.Client.Create(ctx, object.DeepCopy())).To(Succeed(), "it is not for other tenants")
		Expect(red.Client.Create(ctx, configMap("shop", "other", nil))).To(Succeed(), "nor for other objects")
	})

	It("mutate what the tenant creates, and defaults are set afterwards", func(ctx SpecContext) {
		at := webhook.At(patching(`[{"op":"add","path":"/spec/initContainers","value":[{"name":"added","image":"example.com/added"}]},` +
			`{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`))
		kit.Temporarily(ctx, red.Client, kit.Mutating("mutate", at, kit.ForRequests("", "pods", onCreate)))
		var pod *corev1.Pod
		Eventually(func(g Gomega) {
			pod = kit.Pod("shop", "mutated")
			g.Expect(red.Client.Create(ctx, pod, client.DryRunAll)).To(Succeed())
			g.Expect(pod.Spec.InitContainers).To(HaveLen(1))
		}).Should(Succeed())
		Expect(pod.Annotations).To(Equal(map[string]string{"a": "b"}))
		Expect(pod.Spec.InitContainers[0].TerminationMessagePolicy).NotTo(BeEmpty())
		kit.Create(ctx, red.Client, kit.Pod("shop", "mutated"))
		inSuper := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: red.Super("shop"), Name: "mutated"}}
		Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
		Expect(inSuper.Labels).To(HaveKeyWithValue("tenancy.x-k8s.io/converted", red.Key()))
		Expect(inSuper.Annotations).To(HaveKeyWithValue("tenancy.x-k8s.io/namespace", "shop"))
	})

	It("see what controllers create", func(ctx SpecContext) {
		kit.Temporarily(ctx, red.Client, kit.Validating("pods", webhook.At("/deny"), kit.ForRequests("", "pods", onCreate)))
		denied(ctx, func() error { return red.Client.Create(ctx, kit.Pod("shop", "probe"), client.DryRunAll) },
			MatchError(ContainSubstring(`admission webhook "pods.example.com" denied the request`)))
		webhook.Calls()
		set := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "set"},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: kit.Pod("", "").Spec,
				},
			},
		}
		kit.Temporarily(ctx, red.Client, set)
		Eventually(webhook.Calls).Should(ContainElement(And(
			HaveField("UserInfo.Username", HavePrefix("system:")), HaveField("Namespace", "shop"))))
		var events corev1.EventList
		Eventually(func() ([]corev1.Event, error) {
			return events.Items, red.Client.List(ctx, &events, client.InNamespace("shop"))
		}).Should(ContainElement(HaveField("Message", And(ContainSubstring(`admission webhook "pods.example.com" denied the request`),
			Not(ContainSubstring("converted-admission"))))))
	})

	It("reject all when they cannot be reached, unless they are ignored then", func(ctx SpecContext) {
		nowhere := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "nowhere"}}
		configuration := kit.Validating("nowhere", nowhere, kit.ForRequests("", "configmaps", onCreate), forLabel("nowhere"))
		kit.Temporarily(ctx, red.Client, configuration)
		object := configMap("shop", "unreachable", nil)
		object.Labels = map[string]string{"webhook": "nowhere"}
		denied(ctx, func() error { return red.Client.Create(ctx, object.DeepCopy(), client.DryRunAll) },
			And(MatchError(apierrors.IsInternalError, "internal"), MatchError(ContainSubstring(`failed calling webhook "nowhere.example.com"`))))
		kit.Edit(ctx, red.Client, configuration, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
		})
		Eventually(func() error { return red.Client.Create(ctx, object.DeepCopy(), client.DryRunAll) }).Should(Succeed())
	})

	It("are given the time that they have", func(ctx SpecContext) {
		kit.Temporarily(ctx, red.Client, kit.Validating("slow", webhook.At("/slow"), kit.ForRequests("", "configmaps", onCreate), forLabel("slow"),
			func(w *admissionregistrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(1)) }))
		object := configMap("shop", "slow", nil)
		object.Labels = map[string]string{"webhook": "slow"}
		denied(ctx, func() error { return red.Client.Create(ctx, object.DeepCopy(), client.DryRunAll) },
			MatchError(And(ContainSubstring(`failed calling webhook "slow.example.com"`), ContainSubstring("deadline exceeded"))))
	})

	It("deny connections to pods", func(ctx SpecContext) {
		kit.Temporarily(ctx, red.Client, kit.Validating("attach", webhook.At("/deny"), kit.ForRequests("", "pods/attach", onConnect)))
		denied(ctx, func() error { // before that, the error is that it is no upgrade
			return kubernetes.NewForConfigOrDie(red.Config).CoreV1().RESTClient().Post().
				AbsPath("/api/v1/namespaces/shop/pods/webhook/attach").Param("stdout", "true").Do(ctx).Error()
		}, MatchError(ContainSubstring(`admission webhook "attach.example.com" denied the request`)))
	})

	It("see Namespaces, CRDs, custom resources and roles, of which none is the platform's", func(ctx SpecContext) {
		rules := append(kit.ForRequests("", "namespaces", onCreate, onDelete), kit.ForRequests("*", "*", onCreate, onUpdate, onDelete)...)
		kit.Temporarily(ctx, red.Client, kit.Validating("all", webhook.At("/allow"), rules))
		Eventually(func() ([]admissionv1.AdmissionRequest, error) {
			return webhook.Calls(), red.Client.Create(ctx, configMap("shop", "probe", nil), client.DryRunAll)
		}).ShouldNot(BeEmpty())
		kit.Create(ctx, red.Client, namespaceOf("seen"), clusterRole("seen", mayIn("", "get", "pods")))
		calls := webhook.Calls()
		Expect(calls).To(ContainElement(And(HaveField("Resource.Resource", "namespaces"), HaveField("Name", "seen"))))
		Expect(calls).To(ContainElement(And(HaveField("Resource.Resource", "clusterroles"), HaveField("Resource.Group", "rbac.authorization.k8s.io"))))
		Expect(red.Client.Delete(ctx, clusterRole("seen"))).To(Succeed())
		Expect(red.Client.Delete(ctx, namespaceOf("seen"))).To(Succeed())
		calls = append(calls, webhook.Calls()...)
		Expect(must(json.Marshal(calls))).NotTo(Or(ContainSubstring(red.Key()), ContainSubstring("tenancy.x-k8s.io")))
	})

	It("neither mutate nor deny webhook configurations", func(ctx SpecContext) {
		kit.Temporarily(ctx, red.Client, kit.Validating("own", webhook.At("/deny"),
			kit.ForRequests("admissionregistration.k8s.io", "*", admissionregistrationv1.OperationAll)))
		other := kit.Validating("other", webhook.At("/deny"), kit.ForRequests("", "secrets", onCreate), forLabel("none"))
		kit.Create(ctx, red.Client, other)
		Expect(red.Client.Delete(ctx, other)).To(Succeed())
		// The last spec's webhook may still be called for the namespace that is being deleted.
		Consistently(webhook.Calls).WithTimeout(kit.Quiet / 5).ShouldNot(ContainElement(HaveField("Resource.Group", "admissionregistration.k8s.io")))
	})

	It("are validated, listed and deleted as in a cluster", func(ctx SpecContext) {
		wrong := kit.Validating("wrong", webhook.At("/deny"), kit.ForRequests("", "configmaps", onCreate), func(w *admissionregistrationv1.ValidatingWebhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "invalid", Expression: "... [] bad expression"}}
		})
		Expect(red.Client.Create(ctx, wrong)).To(And(MatchError(apierrors.IsInvalid, "invalid"), MatchError(ContainSubstring("compilation failed"))))
		for name, change := range map[string]func(*admissionregistrationv1.ValidatingWebhook){
			"a name":  func(w *admissionregistrationv1.ValidatingWebhook) { w.Name = "short" },
			"a place": func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.URL = new("https://example.com") },
			"no TLS":  func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig = urlOf("http://example.com") },
			"side effects": func(w *admissionregistrationv1.ValidatingWebhook) {
				w.SideEffects = new(admissionregistrationv1.SideEffectClassSome)
			},
			"a timeout":      func(w *admissionregistrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(31)) },
			"no version":     func(w *admissionregistrationv1.ValidatingWebhook) { w.AdmissionReviewVersions = []string{"v2"} },
			"no operation":   func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules[0].Operations = nil },
			"a wrong domain": func(w *admissionregistrationv1.ValidatingWebhook) { w.Name = "a..b.c" },
		} {
			err := red.Client.Create(ctx, kit.Validating("wrong", webhook.At("/deny"), kit.ForRequests("", "configmaps", onCreate), change))
			Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"), name)
		}
		set := map[string]string{"set": "one"}
		for i := range 3 {
			c := kit.Mutating(fmt.Sprint("listed-", i), webhook.At(patching("[]")), kit.ForRequests("", "secrets", onCreate))
			c.Labels = set
			kit.Create(ctx, red.Client, c)
			Expect(*c.Webhooks[0].FailurePolicy).To(Equal(admissionregistrationv1.Fail))
			Expect(*c.Webhooks[0].ReinvocationPolicy).To(Equal(admissionregistrationv1.NeverReinvocationPolicy))
		}
		var list admissionregistrationv1.MutatingWebhookConfigurationList
		Expect(red.Client.List(ctx, &list, client.MatchingLabels(set))).To(Succeed())
		Expect(list.Items).To(HaveLen(3))
		Expect(blue.Client.List(ctx, &list)).To(Succeed())
		Expect(list.Items).To(BeEmpty())
		Expect(red.Client.DeleteAllOf(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{}, client.MatchingLabels(set))).To(Succeed())
		Expect(red.Client.List(ctx, &list, client.MatchingLabels(set))).To(Succeed())
		Expect(list.Items).To(BeEmpty())
	})
})

func urlOf(url string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: &url}
}
