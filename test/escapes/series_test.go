package escapes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Names in the metrics of the process", func() {
	inBothChains(attackMetrics)
})

// attackMetrics declares the attacks by names that become labels of metrics. A
// series stays until the process ends.
func attackMetrics(isolation tenancyv1alpha1.Isolation, where string) {
	const (
		// mark is in all names that mallory chooses.
		mark  = "mallorys"
		group = mark + ".example.com"
		ns    = egressNamespace
	)
	var mallory *local.Tenant
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: mark}}
	creations := kit.ForRequests("", "configmaps", admissionregistrationv1.Create)

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, kit.WithIsolation(isolation))
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})
	shouldServeOthers(isolation, ns)
	// shouldBeRefused waits for the error of a write: those of what was deleted before
	// may still come.
	shouldBeRefused := func(ctx context.Context, why string) {
		GinkgoHelper()
		Eventually(func(ctx context.Context) error {
			return mallory.Client.Create(ctx, settings.DeepCopy(), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring(why)))
	}

	attack("the names of a hundred webhooks"+where, "review: a thousand of them and one dry run make 13,000 series", func(ctx SpecContext) {
		nowhere := at("https://" + group)
		validating := times(100, kit.Validating(mark, nowhere, creations))
		for i := range validating.Webhooks {
			if i > 0 {
				validating.Webhooks[i].FailurePolicy = new(admissionregistrationv1.Ignore)
			}
			if i%2 == 1 {
				validating.Webhooks[i].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: mark, Expression: "false"}}
			}
		}
		mutating := kit.Mutating(mark, nowhere, creations)
		mutating.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
		mutating.Webhooks[0].MatchConditions = []admissionregistrationv1.MatchCondition{{Name: mark, Expression: "object.spec.none == 'a'"}}
		kit.Temporarily(ctx, mallory.Client, validating)
		kit.Temporarily(ctx, mallory.Client, mutating)
		shouldBeRefused(ctx, `failed calling webhook "`+group)
		Expect(seriesWith(ctx, mark)).To(BeEmpty())
	})

	attack("the names of policies and of their bindings"+where, "review: labels of what a tenant stores", func(ctx SpecContext) {
		policy := thousandExpressions(mark)
		policy.Spec.Validations = policy.Spec.Validations[:1]
		policy.Spec.Validations[0].Expression = "false"
		policy.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: mark, Expression: "true"}}
		kit.Temporarily(ctx, mallory.Client, policy)
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: mark}}
		binding.Spec.PolicyName, binding.Spec.ValidationActions = mark, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
		kit.Temporarily(ctx, mallory.Client, binding)
		mutateBy(ctx, mallory, mark, creations[0], admissionregistrationv1.Mutation{
			PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{data: {"a": "b"}}`},
		})
		shouldBeRefused(ctx, "ValidatingAdmissionPolicy '"+mark)
		Expect(seriesWith(ctx, mark)).To(BeEmpty())
	})

	attack("the groups, versions and resources of definitions"+where, "review: labels of what a tenant stores", func(ctx SpecContext) {
		crd := crdOf(group, nil)
		crd.Name = mark + "." + group
		crd.Spec.Names.Plural, crd.Spec.Names.Singular = mark, mark
		crd.Spec.Versions[0].Deprecated = true
		kit.Temporarily(ctx, mallory.Client, crd)
		one := widget("", mark)
		one.SetAPIVersion(group + "/v1")
		Eventually(func(ctx context.Context) error { return mallory.Client.Create(ctx, one) }).WithContext(ctx).Should(Succeed())
		path := "/apis/" + group + "/v1/" + mark
		for _, query := range []string{"", "?limit=1", "?watch=1&timeoutSeconds=1", "/" + mark, "/none", "/" + mark + "/" + mark} {
			request(ctx, mallory.Config, http.MethodGet, path+query, nil)
		}
		Expect(mallory.Client.Delete(ctx, one)).To(Succeed())
		Expect(conversion(ctx, mallory, "other-"+group, apiextensionsv1.WebhookClientConfig{URL: new("https://" + group)})).To(HaveOccurred())
		Expect(seriesWith(ctx, mark)).To(BeEmpty())
	})

	attack("the names of what controllers control"+where, "idea: some count by objects, or by what these say", func(ctx SpecContext) {
		template := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": mark}}, Spec: kit.Pod(ns, mark).Spec,
		}
		set := &appsv1.StatefulSet{ObjectMeta: settings.ObjectMeta}
		set.Spec.Selector, set.Spec.Template = &metav1.LabelSelector{MatchLabels: template.Labels}, template
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: settings.ObjectMeta}
		scaler.Spec.MaxReplicas = 2
		scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: mark}
		elsewhere := jobOf(ns, "elsewhere", template.Spec)
		elsewhere.Spec.ManagedBy = new(group + "/controller")
		failed := jobOf(ns, "failed", template.Spec)
		kit.Create(ctx, mallory.Client, set, scaler, elsewhere, failed)
		Eventually(func(ctx context.Context) error {
			if err := kit.Get(ctx, mallory.Client, failed); err != nil {
				return err
			}
			failed.Status.Conditions = append(failed.Status.Conditions, batchv1.JobCondition{
				Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: mark, LastTransitionTime: metav1.Now(),
			})
			return mallory.Client.Status().Update(ctx, failed)
		}).WithContext(ctx).Should(Succeed())
		Eventually(kit.Read(ctx, mallory.Client, failed)).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", batchv1.JobFailed), HaveField("Reason", mark)))))
		Eventually(kit.Read(ctx, mallory.Client, set)).Should(HaveField("Status.ObservedGeneration", BeNumerically(">", 0)))
		Expect(seriesWith(ctx, mark)).To(BeEmpty())
	})

	Context("by a server", func() {
		const number = 47110815
		var (
			server  *listener
			reviews atomic.Int32
		)

		BeforeAll(func(ctx SpecContext) {
			kit.UsePodNetwork(ctx)
			review := kit.Decide(func(string, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				reviews.Add(1)
				return &admissionv1.AdmissionResponse{Result: &metav1.Status{Code: number}}
			})
			server = listen(kit.NextPodAddress()+":0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					review.ServeHTTP(w, r)
				case strings.Contains(r.URL.Path, mark+"/"):
					<-r.Context().Done()
				}
			}))
			backend(ctx, mallory, "backend", server.Addr().String())
			leadTo(ctx, mallory, "backend", server.AddrPort)
		})

		attack("the code of a webhook's status"+where, "idea: it can be any number, and upstream panics with one of four digits", func(ctx SpecContext) {
			kit.Temporarily(ctx, mallory.Client, kit.Validating(mark, served("backend", "/", server.ca), creations))
			shouldBeRefused(ctx, "it can be at most 599")
			// A controller of the tenant creates a ConfigMap there, and counts the answers.
			before := reviews.Load()
			kit.Create(ctx, mallory.Client, kit.Namespace("published"))
			Eventually(reviews.Load).Should(BeNumerically(">", before))
			Expect(seriesWith(ctx, fmt.Sprint(number))).To(BeEmpty())
		})

		attack("the paths of an aggregated API that does not answer"+where, "idea: after the time of a request, its path is a label", func(ctx SpecContext) {
			aggregated := mark + ".aggregated.example.com"
			shouldBecomeAvailable(ctx, mallory, aggregate(ctx, mallory, aggregated, "backend", 443))
			for _, path := range []string{"/" + mark + "/a", "/namespaces/" + ns + "/pods/a/" + mark + "/", "/" + mark + "/" + strings.Repeat("a", 60_000)} {
				// Under load, its check can fail for a moment, and requests get a 503.
				Eventually(func(g Gomega) {
					code, text := request(ctx, mallory.Config, http.MethodGet, "/apis/"+aggregated+"/v1"+path+"?timeout=100ms", nil)
					g.Expect(code).To(Equal(http.StatusGatewayTimeout), text)
				}).Should(Succeed())
			}
			Expect(seriesWith(ctx, mark)).To(BeEmpty())
		})
	})
}

// seriesWith returns the series of the super cluster's process that have a text in
// them, of each the beginning.
func seriesWith(ctx context.Context, text string) []string {
	GinkgoHelper()
	code, all := request(ctx, super.Config, http.MethodGet, "/metrics", nil)
	Expect(code).To(Equal(http.StatusOK), "%.300s", all)
	Expect(all).To(ContainSubstring("apiserver_request_total"))
	var found []string
	for line := range strings.Lines(all) {
		if strings.Contains(line, text) {
			found = append(found, fmt.Sprintf("%.300s", line))
		}
	}
	return found
}

// jobOf is a Job with one pod.
func jobOf(ns, name string, pod corev1.PodSpec) *batchv1.Job {
	pod.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}},
	}
}
