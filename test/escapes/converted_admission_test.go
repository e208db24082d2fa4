package escapes

import (
	"context"
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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/convert/admission"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The admission of a converted tenant", Ordered, ContinueOnFailure, func() {
	const treasure = "the-treasure-of-alice"
	var (
		alice, mallory *local.Tenant
		hers, mine     *kit.Webhook
	)
	shop := func() *corev1.Namespace { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}} }
	settings := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	selected := func(label string) *corev1.ConfigMap {
		object := settings("selected")
		object.Labels = map[string]string{"webhook": label}
		return object
	}
	create := admissionregistrationv1.Create
	// answers is a webhook: the path is a patch, or what to do.
	answers := func(path string, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		response := &admissionv1.AdmissionResponse{Allowed: true}
		switch {
		case path == "/sleep":
			time.Sleep(20 * time.Second)
		case path == "/deny":
			response.Allowed = false
		case strings.HasPrefix(path, "/["):
			response.PatchType, response.Patch = new(admissionv1.PatchTypeJSONPatch), []byte(path[1:])
		}
		return response
	}
	// marks is the label of a marker: a webhook that is new each time, since the previous ones may still have an effect.
	markers := 0
	marks := func() (name string, selector *metav1.LabelSelector) {
		markers++
		name = fmt.Sprint("marker-", markers)
		return name, &metav1.LabelSelector{MatchLabels: map[string]string{"webhook": name}}
	}
	// denies waits until a marker has an effect: so do the changes of configurations of its kind that were made before.
	denies := func(ctx context.Context, marker client.Object) {
		GinkgoHelper()
		kit.Create(ctx, mallory.Client, marker)
		Eventually(func() error { return mallory.Client.Create(ctx, selected(marker.GetName()), client.DryRunAll) }).
			Should(MatchError(ContainSubstring(`"` + marker.GetName() + `.example.com" denied`)))
		Expect(mallory.Client.Delete(ctx, marker)).To(Succeed())
	}
	// effective waits until mallory's validating webhooks have an effect on her own objects.
	effective := func(ctx context.Context) {
		GinkgoHelper()
		name, selector := marks()
		denies(ctx, kit.Validating(name, mine.At("/deny"), kit.ForRequests("", "configmaps", create),
			func(w *admissionregistrationv1.ValidatingWebhook) { w.ObjectSelector = selector }))
	}
	// mutating has a webhook patch mallory's objects, and waits until it has an effect.
	mutating := func(ctx context.Context, patch, resource string) {
		GinkgoHelper()
		kit.Temporarily(ctx, mallory.Client, kit.Mutating("patches", mine.At("/"+patch), kit.ForRequests("", resource, create)))
		name, selector := marks()
		denies(ctx, kit.Mutating(name, mine.At("/deny"), kit.ForRequests("", "configmaps", create),
			func(w *admissionregistrationv1.MutatingWebhook) { w.ObjectSelector = selector }))
	}

	BeforeAll(func(ctx SpecContext) {
		converted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "Converted" }
		alice, mallory = tenant(ctx, converted), tenant(ctx, converted)
		for _, t := range []*local.Tenant{alice, mallory} {
			Eventually(func() error { return t.Client.Create(ctx, shop()) }).Should(Succeed())
		}
		hers, mine = kit.StartWebhook(ctx, super, alice, "shop", "webhook", answers), kit.StartWebhook(ctx, super, mallory, "shop", "webhook", answers)
		kit.Create(ctx, alice.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hidden"}, Data: map[string]string{"a": treasure}})
	})

	attack("the gateway's own network, by the webhook of a converted tenant", "design: webhooks of one tenant for all", func(ctx SpecContext) {
		trap := listen("127.0.0.1:0", nil)
		hers.Calls()
		for i, url := range []string{
			"https://" + trap.String(), fmt.Sprintf("https://localhost:%d", trap.Port()), fmt.Sprintf("https://[::ffff:127.0.0.1]:%d", trap.Port()),
			"https://169.254.169.254/latest/meta-data", "https://" + hers.Address, "https://kubernetes.default.svc", super.Config.Host,
			"https://webhook.shop.svc", "https://" + strings.TrimPrefix(alice.Config.Host, "https://"),
		} {
			label := fmt.Sprint("place-", i)
			kit.Temporarily(ctx, mallory.Client, kit.Validating(label, at("https://"+strings.TrimPrefix(url, "https://")), kit.ForRequests("", "configmaps", create),
				func(w *admissionregistrationv1.ValidatingWebhook) {
					w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"webhook": label}}
				}))
			var err error
			Eventually(func() error {
				err = mallory.Client.Create(ctx, selected(label), client.DryRunAll)
				return err
			}).ShouldNot(Succeed(), url)
			shouldNotBeAllowed(err)
		}
		trap.shouldBeUntouched()
		Expect(hers.Calls()).To(BeEmpty())
	})

	attack("pods of others, by a Service that a webhook names", "design: only the tenant's own Services", func(ctx SpecContext) {
		hers.Calls()
		for i, namespace := range []string{alice.Super("shop"), mallory.Super("shop"), alice.Key(), "kube-system", "default"} {
			label := fmt.Sprint("service-", i)
			service := admissionregistrationv1.WebhookClientConfig{
				CABundle: hers.CA, Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "webhook"},
			}
			kit.Temporarily(ctx, mallory.Client, kit.Validating(label, service, kit.ForRequests("", "configmaps", create),
				func(w *admissionregistrationv1.ValidatingWebhook) {
					w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"webhook": label}}
				}))
			Eventually(func() error { return mallory.Client.Create(ctx, selected(label), client.DryRunAll) }).
				Should(MatchError(ContainSubstring("failed calling webhook")), namespace)
		}
		Expect(hers.Calls()).To(BeEmpty())
	})

	attack("objects of others and of the platform, by a webhook for all", "design: namespaceSelector: {}", func(ctx SpecContext) {
		all := kit.ForRequests("*", "*/*", admissionregistrationv1.OperationAll)
		kit.Temporarily(ctx, mallory.Client, kit.Validating("all", mine.At("/deny"), all, func(w *admissionregistrationv1.ValidatingWebhook) {
			w.FailurePolicy = new(admissionregistrationv1.Fail)
		}))
		Eventually(func() error { return mallory.Client.Create(ctx, settings("a"), client.DryRunAll) }).ShouldNot(Succeed())
		mine.Calls()
		kit.Create(ctx, alice.Client, settings("free"))
		kit.Create(ctx, super.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Key(), GenerateName: "platform-"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "platform-"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Super("shop"), GenerateName: "platform-"}})
		kit.Create(ctx, alice.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "free"}})
		for _, call := range mine.Calls() {
			Expect(call.UserInfo.Username).To(HavePrefix("system:"), "a controller, on an object of mallory: %v", call)
			Expect(call.Namespace).To(BeElementOf("shop", "default", "kube-system", "kube-public", "kube-node-lease"))
		}
	})

	attack("the platform's labels, by selectors and patches of webhooks", "idea: webhooks see the tenant's view", func(ctx SpecContext) {
		selects := func(key string) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}}
		}
		for i, key := range []string{names.Converted, names.AdmissionLabel, names.VCName} {
			kit.Temporarily(ctx, mallory.Client, kit.Validating(fmt.Sprint("selects-", i), mine.At("/deny"), kit.ForRequests("", "configmaps", create),
				func(w *admissionregistrationv1.ValidatingWebhook) { w.ObjectSelector = selects(key) }),
			)
			kit.Temporarily(ctx, mallory.Client, kit.Validating(fmt.Sprint("selects-namespaces-", i), mine.At("/deny"), kit.ForRequests("", "configmaps", create),
				func(w *admissionregistrationv1.ValidatingWebhook) { w.NamespaceSelector = selects(key) }))
		}
		effective(ctx)
		Expect(mallory.Client.Create(ctx, settings("unselected"))).To(Succeed())
		for _, key := range []string{names.Converted, names.AdmissionLabel, names.VCNamespace} {
			mutating(ctx, `[{"op":"add","path":"/metadata/labels","value":{"`+key+`":"`+alice.Key()+`"}}]`, "secrets")
			err := mallory.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "forged"}})
			Expect(err).To(MatchError(ContainSubstring("are the platform's")), key)
			Expect(mallory.Client.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "patches"}})).To(Succeed())
		}
	})

	attack("the namespaces of others, by what a webhook makes of an object", "idea: the answer is converted back", func(ctx SpecContext) {
		for _, patch := range []string{
			`[{"op":"replace","path":"/metadata/namespace","value":"` + alice.Super("shop") + `"}]`,
			`[{"op":"replace","path":"/metadata/namespace","value":"default"}]`,
			`[{"op":"replace","path":"/metadata/name","value":"hidden"}]`,
			`[{"op":"replace","path":"/kind","value":"RoleBinding"}]`,
			`[{"op":"replace","path":"/apiVersion","value":"rbac.authorization.k8s.io/v1"}]`,
		} {
			mutating(ctx, patch, "secrets")
			err := mallory.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "moved"}})
			Expect(err).To(MatchError(ContainSubstring("cannot change the type, the name or the namespace")), patch)
			Expect(mallory.Client.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "patches"}})).To(Succeed())
		}
		for patch, refused := range map[string]string{
			`[{"op":"add","path":"/spec/hostNetwork","value":true}]`:                                                                                "host namespaces",
			`[{"op":"add","path":"/spec/containers/0/securityContext","value":{"privileged":true}}]`:                                                "privileged",
			`[{"op":"add","path":"/spec/volumes/-","value":{"name":"h","hostPath":{"path":"/"}}}]`:                                                  "hostPath",
			`[{"op":"add","path":"/spec/nodeName","value":"node"}]`:                                                                                 "",
			`[{"op":"replace","path":"/spec/volumes/0/projected/sources/0/serviceAccountToken/audience","value":"https://kubernetes.default.svc"}]`: "",
		} {
			mutating(ctx, patch, "pods")
			pod := kit.Pod("shop", "escapes")
			err := mallory.Client.Create(ctx, pod, client.DryRunAll)
			if refused != "" {
				Expect(err).To(MatchError(ContainSubstring(refused)), patch)
			}
			if err == nil { // converted, as the tenant's own words are
				Expect(mallory.Client.Create(ctx, pod)).To(Succeed())
				inSuper := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Super("shop"), Name: "escapes"}}
				Expect(kit.Get(ctx, super.Client, inSuper)).To(Succeed())
				for _, volume := range inSuper.Spec.Volumes {
					for _, source := range volume.Projected.Sources {
						if source.ServiceAccountToken != nil {
							Expect(source.ServiceAccountToken.Audience).To(HavePrefix("converted.tenancy.x-k8s.io/"+mallory.Key()), patch)
						}
					}
				}
				Expect(mallory.Client.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
			}
			Expect(mallory.Client.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "patches"}})).To(Succeed())
		}
	})

	attack("the workers of controllers, by a webhook that sleeps", "issue: a slow webhook beside another tenant", func(ctx SpecContext) {
		kit.Temporarily(ctx, mallory.Client, kit.Validating("sleeps", mine.At("/sleep"), kit.ForRequests("", "pods", create),
			func(w *admissionregistrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(30)) }))
		effective(ctx)
		set := func(name string, replicas int32) *appsv1.ReplicaSet {
			labels := map[string]string{"set": name}
			return &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Spec: appsv1.ReplicaSetSpec{
					Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: kit.Pod("", "").Spec},
				},
			}
		}
		for i := range 30 {
			kit.Temporarily(ctx, mallory.Client, set(fmt.Sprint("sleeps-", i), 3))
		}
		for i := range 3 {
			began := time.Now()
			fast := set(fmt.Sprint("fast-", i), 3)
			kit.Temporarily(ctx, alice.Client, fast)
			Eventually(kit.Read(ctx, alice.Client, fast)).WithTimeout(kit.Soon).Should(HaveField("Status.Replicas", int32(3)))
			AddReportEntry("another tenant's ReplicaSet", time.Since(began).String())
		}
	})

	attack("the evaluation of others' webhooks, by calling the gateway as the super cluster does", "idea: the endpoint is open to pods", func(ctx SpecContext) {
		door := kit.DoorOf(mallory.Config)
		transport, err := rest.TransportFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
		Expect(err).NotTo(HaveOccurred())
		for _, secret := range []string{"", "guess", strings.Repeat("A", 43), "..%2fvalidate%2f"} {
			for _, phase := range []string{"mutate", "validate", "other"} {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+door.Address+admission.Path+phase+"/"+secret,
					strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"a","namespace":"`+alice.Super("shop")+`"}}`))
				Expect(err).NotTo(HaveOccurred())
				response, err := transport.RoundTrip(r)
				Expect(err).NotTo(HaveOccurred())
				Expect(response.Body.Close()).To(Succeed())
				Expect(response.StatusCode).To(Equal(http.StatusNotFound), r.URL.Path)
			}
		}
	})

	attack("another user of the tenant, by the header that has the user", "idea: the gateway impersonates itself", func(ctx SpecContext) {
		kit.Temporarily(ctx, mallory.Client, kit.Validating("who", mine.At("/allow"), kit.ForRequests("", "configmaps", create)))
		effective(ctx)
		mine.Calls()
		config := rest.CopyConfig(mallory.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "eve", Groups: []string{"system:masters"}, Extra: map[string][]string{
			names.ConvertedUser: {"eyJ1c2VybmFtZSI6InN5c3RlbTphZG1pbiJ9"},
		}}
		as, err := local.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		Expect(as.Create(ctx, settings("as-eve"), client.DryRunAll)).To(Succeed())
		Expect(mine.Calls()).To(ContainElement(HaveField("UserInfo.Username", "eve")))
	})

	attack("objects of others, as the parameters of a policy", "design: policies reading params of other tenants", func(ctx SpecContext) {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "reads"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				ParamKind: &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: kit.ForRequests("", "secrets", create)[0]},
				}},
				Validations: []admissionregistrationv1.Validation{{Expression: "false", MessageExpression: "string(params.data.a)"}},
			},
		}
		kit.Temporarily(ctx, mallory.Client, policy)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "asks"}}
		for i, ref := range []admissionregistrationv1.ParamRef{
			{Name: "hidden", Namespace: alice.Super("shop")}, {Name: "hidden", Namespace: "shop"}, {Name: "hidden"},
			{Selector: &metav1.LabelSelector{}, Namespace: alice.Super("shop")},
		} {
			ref.ParameterNotFoundAction = new(admissionregistrationv1.DenyAction)
			binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("reads-", i)},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName: "reads", ParamRef: &ref, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				},
			}
			kit.Create(ctx, mallory.Client, binding)
			Eventually(func() error { return mallory.Client.Create(ctx, secret.DeepCopy(), client.DryRunAll) }).
				Should(And(MatchError(ContainSubstring(binding.Name)), MatchError(ContainSubstring("no params found")), Not(MatchError(ContainSubstring(treasure)))))
			Expect(mallory.Client.Delete(ctx, binding)).To(Succeed())
		}
	})

	attack("a tenant's own webhooks and policies, by the other version of a kind", "upstream: matchPolicy is Equivalent by default", func(ctx SpecContext) {
		inForm := func(group, version, resource string) []admissionregistrationv1.RuleWithOperations {
			rules := kit.ForRequests(group, resource, create)
			rules[0].APIVersions = []string{version}
			return rules
		}
		kit.Temporarily(ctx, mallory.Client, kit.Validating("denies-v1", mine.At("/deny"), inForm("autoscaling", "v1", "horizontalpodautoscalers")))
		kit.Temporarily(ctx, mallory.Client, kit.Validating("denies-events", mine.At("/deny"), inForm("events.k8s.io", "v1", "events")))
		effective(ctx)
		// The field is that by which webhooks and policies skip another form.
		scaler := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
			"metadata": map[string]any{"namespace": "shop", "name": "bypass", "inOtherForm": true},
			"spec": map[string]any{
				"maxReplicas": int64(3), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
			},
		}}
		old := scaler.DeepCopy()
		old.SetAPIVersion("autoscaling/v1")
		event := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"namespace": "shop", "name": "bypass", "inOtherForm": true},
			"involvedObject": map[string]any{"kind": "Pod", "namespace": "shop", "name": "web"},
		}}
		denied := func(object *unstructured.Unstructured, by string) {
			GinkgoHelper()
			Expect(mallory.Client.Create(ctx, object.DeepCopy(), client.DryRunAll)).To(MatchError(ContainSubstring(by)))
			Expect(mallory.Client.Create(ctx, object.DeepCopy())).To(MatchError(ContainSubstring(by)))
			unstructured.RemoveNestedField(object.Object, "metadata", "inOtherForm")
			applied := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
			Expect(mallory.Client.Apply(ctx, applied, client.FieldOwner("bypass"))).To(MatchError(ContainSubstring(by)))
		}
		denied(scaler, `"denies-v1.example.com" denied`)
		denied(old, `"denies-v1.example.com" denied`)
		denied(event, `"denies-events.example.com" denied`)

		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "denies-v2"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: inForm("autoscaling", "v2", "horizontalpodautoscalers")[0]},
				}},
				Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
			},
		}
		kit.Temporarily(ctx, mallory.Client, policy)
		kit.Temporarily(ctx, mallory.Client, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "denies-v2"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "denies-v2", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		})
		Expect(mallory.Client.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "denies-v1"}})).To(Succeed())
		for _, object := range []*unstructured.Unstructured{old, scaler} {
			Eventually(func() error { return mallory.Client.Create(ctx, object.DeepCopy(), client.DryRunAll) }).
				Should(MatchError(ContainSubstring("'denies-v2' with binding 'denies-v2' denied")))
		}
		Expect(alice.Client.Create(ctx, old.DeepCopy(), client.DryRunAll)).To(Succeed(), "they are not for others")
	})

	attack("the gateway's CPU, by a policy that computes without an end", "idea: a bomb of CEL", func(ctx SpecContext) {
		const bomb = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, object.data.all(e, object.data.all(f, a != 'x'))))))"
		kit.Temporarily(ctx, mallory.Client, &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "bomb"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: kit.ForRequests("", "configmaps", create)[0]},
				}},
				Validations: []admissionregistrationv1.Validation{{Expression: bomb}},
			},
		})
		kit.Temporarily(ctx, mallory.Client, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bomb"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "bomb", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		})
		fuse := settings("fuse")
		fuse.Data = map[string]string{}
		for i := range 200 {
			fuse.Data[fmt.Sprint(i)] = ""
		}
		explode := func() error { return mallory.Client.Create(ctx, fuse.DeepCopy(), client.DryRunAll) }
		Eventually(explode).Should(MatchError(ContainSubstring("cost limit exceeded")))
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				for range 5 {
					_ = explode()
				}
			})
		}
		began := time.Now()
		for range 20 {
			Expect(alice.Client.Create(ctx, settings("calm"), client.DryRunAll)).To(Succeed())
		}
		AddReportEntry("20 requests of another tenant", time.Since(began).String())
		Expect(time.Since(began)).To(BeNumerically("<", kit.Soon))
		work.Wait()
	})

	attack("the gateway's CPU, by match conditions that compute for long", "idea: policies are evaluated one at a time, and webhooks are not", func(ctx SpecContext) {
		loops := "true"
		for _, n := range []int{8, 100, 100} {
			loops = fmt.Sprintf("lists.range(%d).all(a%d, %s)", n, len(loops), loops)
		}
		conditions := []admissionregistrationv1.MatchCondition{{Name: "loops", Expression: loops}, {Name: "again", Expression: "!(" + loops + ")"}}
		creations := kit.ForRequests("", "configmaps", create)
		// All requests compute after the same time, in which a webhook does not answer.
		kit.Temporarily(ctx, mallory.Client, kit.Mutating("a-sleeps", mine.At("/sleep"), creations, func(w *admissionregistrationv1.MutatingWebhook) {
			w.TimeoutSeconds, w.FailurePolicy = new(int32(1)), new(admissionregistrationv1.Ignore)
		}))
		for i := range 20 {
			name := fmt.Sprint("loops-", i)
			kit.Temporarily(ctx, mallory.Client, kit.Validating(name, mine.At("/allow"), creations,
				func(w *admissionregistrationv1.ValidatingWebhook) { w.MatchConditions = conditions }))
			kit.Temporarily(ctx, mallory.Client, kit.Mutating(name, mine.At("/allow"), creations,
				func(w *admissionregistrationv1.MutatingWebhook) { w.MatchConditions = conditions }))
		}
		effective(ctx)
		attacking, cancel := context.WithCancel(ctx)
		defer cancel()
		var work sync.WaitGroup
		for i := range 16 {
			work.Go(func() {
				for attacking.Err() == nil {
					_ = mallory.Client.Create(attacking, settings(fmt.Sprint("loops-", i)), client.DryRunAll)
				}
			})
		}
		time.Sleep(3 * time.Second)
		began := time.Now()
		for range 20 {
			Expect(alice.Client.Create(ctx, settings("calm"), client.DryRunAll)).To(Succeed())
		}
		AddReportEntry("20 requests of another tenant", time.Since(began).String())
		Expect(time.Since(began)).To(BeNumerically("<", 15*time.Second), "half of what it takes if 16 are evaluated at a time")
		cancel()
		work.Wait()
	})

	attack("the type checks of others, by many policies that take long to check", "upstream: the type checker cannot be stopped", func(ctx SpecContext) {
		policyFor := func(name string, expressions ...string) *admissionregistrationv1.ValidatingAdmissionPolicy {
			rules := kit.ForRequests("", "configmaps", create)[0]
			rules.APIVersions = []string{"v1"} // types are not checked by rules for all
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
			policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				{RuleWithOperations: rules},
			}}
			for _, expression := range expressions {
				policy.Spec.Validations = append(policy.Spec.Validations, admissionregistrationv1.Validation{Expression: expression})
			}
			return policy
		}
		checked := HaveField("Status.ObservedGeneration", Equal(int64(1)))
		long := func(n int) string {
			return "[" + strings.TrimSuffix(strings.Repeat("[],", n), ",") + "].size() > object.x"
		}
		began := time.Now()
		Expect(mallory.Client.Create(ctx, policyFor("type-0", long(100_000)))).To(MatchError(ContainSubstring("more work than it may be")))
		Expect(time.Since(began)).To(BeNumerically("<", kit.Soon))
		kinds := []string{
			"configmaps", "endpoints", "events", "limitranges", "namespaces", "pods", "podtemplates", "secrets", "serviceaccounts", "services",
		}
		few := policyFor("type-0", long(1_250))
		few.Spec.MatchConstraints.ResourceRules[0].Resources = kinds
		kit.Temporarily(ctx, mallory.Client, few)
		for i := range 20 {
			policy := policyFor(fmt.Sprint("type-", i+1), slices.Repeat([]string{"object.datum.x == object.datum.y"}, 100)...)
			policy.Spec.MatchConstraints.ResourceRules[0].Resources = kinds
			kit.Temporarily(ctx, mallory.Client, policy)
		}
		hers := policyFor("typed", "object.datum.a == 'b'")
		kit.Temporarily(ctx, alice.Client, hers)
		began = time.Now()
		Eventually(kit.Read(ctx, alice.Client, hers)).WithTimeout(2 * kit.Soon).Should(And(checked,
			HaveField("Status.TypeChecking.ExpressionWarnings", HaveLen(1))))
		AddReportEntry("a policy of another tenant is checked after", time.Since(began).String())
		Eventually(kit.Read(ctx, mallory.Client, few)).WithTimeout(10 * kit.Soon).Should(And(checked,
			HaveField("Status.TypeChecking.ExpressionWarnings", ConsistOf(HaveField("Warning", ContainSubstring("types are not checked"))))))
	})

	// The last one: mallory cannot write policies for a while then.
	attack("the gateway's CPU, by long expressions that are compiled again and again", "upstream: the compiler cannot be stopped", func(ctx SpecContext) {
		const path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
		long := strings.Repeat("1==1||", 1_500) + "true"
		body := `{"metadata":{"generateName":"long-"},"spec":{"matchConstraints":{"resourceRules":[
			{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},"validations":[{"expression":"` + long + `"}]}}`
		var written, code int
		var text string
		for code != http.StatusTooManyRequests && written < 40 {
			code, text = request(ctx, mallory.Config, http.MethodPost, path+"?dryRun=All", strings.NewReader(body))
			Expect(code).To(BeElementOf(http.StatusCreated, http.StatusTooManyRequests), text)
			written++
		}
		Expect(code).To(Equal(http.StatusTooManyRequests))
		Expect(text).To(And(ContainSubstring("try again in"), ContainSubstring("retryAfterSeconds")))
		AddReportEntry("policies before the first 429", fmt.Sprint(written-1))
		code, text = request(ctx, alice.Config, http.MethodPost, path+"?dryRun=All", strings.NewReader(body))
		Expect(code).To(Equal(http.StatusCreated), text)
	})
})
