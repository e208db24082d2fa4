package escapes

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Webhooks that lead to the apiserver that calls them", func() {
	inBothChains(attackWithOwnWebhooks)
})

// attackWithOwnWebhooks declares the attacks on control planes of an isolation. The
// calls stay in the process, and are those of the control plane itself. After each
// attack, another tenant of the process has to be served.
func attackWithOwnWebhooks(isolation tenancyv1alpha1.Isolation, where string) {
	const (
		ns       = egressNamespace
		noOthers = "has to be an aggregated API"
		fewest   = 10 // writes in flight
	)
	var mallory *local.Tenant
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}
	creations := kit.ForRequests("", "configmaps", admissionregistrationv1.Create)
	// itself leads to a path of the apiserver.
	itself := func(path string) admissionregistrationv1.WebhookClientConfig {
		return at("https://kubernetes.default.svc" + path)
	}

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{
				Isolation: isolation, Limits: &tenancyv1alpha1.ControlPlaneLimits{ConcurrentWrites: new(int32(fewest))},
			}
		})
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})
	shouldServeOthers(isolation, ns)

	attack("thirty webhooks of which each calls all of them"+where, "review: one request takes gigabytes", func(ctx SpecContext) {
		const toItself = "/api/v1/namespaces/default/services/https:kubernetes:443/proxy/"
		connections := kit.ForRequests("", "services/proxy", admissionregistrationv1.Connect)
		kit.Temporarily(ctx, mallory.Client, times(30, kit.Validating("turns", itself(toItself), connections)))
		Eventually(func(ctx context.Context) error { return ask(ctx, mallory, toItself, "") }).WithContext(ctx).
			Should(MatchError(ContainSubstring(noOthers)))
	})

	attack("objects that a webhook makes the control plane itself create"+where,
		"idea: a review is an object of the API if a definition says so", func(ctx SpecContext) {
			reviews := reviewDefinition("admission.k8s.io", "AdmissionReview")
			kit.Temporarily(ctx, mallory.Client, reviews)
			nameAll(ctx, mallory, reviews)
			review := &unstructured.Unstructured{}
			review.SetAPIVersion("admission.k8s.io/v1")
			review.SetKind("AdmissionReview")
			Eventually(func(ctx context.Context) error { return mallory.Client.Create(ctx, review.DeepCopy()) }).WithContext(ctx).Should(Succeed())
			made := &unstructured.UnstructuredList{}
			made.SetAPIVersion("admission.k8s.io/v1")
			made.SetKind("AdmissionReviewList")
			Expect(mallory.Client.List(ctx, made)).To(Succeed())
			before := len(made.Items)

			kit.Temporarily(ctx, mallory.Client, kit.Validating("made", itself("/apis/admission.k8s.io/v1/admissionreviews"), creations))
			Expect(refusal(ctx, mallory, settings)).To(MatchError(ContainSubstring(noOthers)))
			Expect(mallory.Client.List(ctx, made)).To(Succeed())
			Expect(made.Items).To(HaveLen(before))
		})

	attack("a conversion webhook whose calls have to be converted"+where,
		"idea: a conversion has neither a context nor a time", func(ctx SpecContext) {
			// Another version than that of definitions can be the tenant's.
			const group, version = "apiextensions.k8s.io", "v1beta1"
			crd := reviewDefinition(group, "ConversionReview")
			stored := crd.Spec.Versions[0]
			stored.Name = "v2"
			crd.Spec.Versions[0].Name, crd.Spec.Versions[0].Storage = version, false
			crd.Spec.Versions = append(crd.Spec.Versions, stored)
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: itself("/apis/" + group + "/" + version + "/conversionreviews").URL},
					ConversionReviewVersions: []string{version},
				},
			}
			kit.Temporarily(ctx, mallory.Client, crd)
			nameAll(ctx, mallory, crd)
			review := &unstructured.Unstructured{}
			review.SetAPIVersion(group + "/" + version)
			review.SetKind("ConversionReview")
			review.SetName("turn")
			Eventually(func(ctx context.Context) error { return mallory.Client.Create(ctx, review.DeepCopy()) }).WithContext(ctx).
				Should(MatchError(ContainSubstring(noOthers)))
		})

	attack("an aggregated API that is the apiserver itself"+where, "review: each request is sent to where it is from", func(ctx SpecContext) {
		own, err := url.Parse(mallory.Config.Host)
		Expect(err).NotTo(HaveOccurred())
		port, err := strconv.Atoi(own.Port())
		Expect(err).NotTo(HaveOccurred())
		for name, to := range map[string]struct {
			host string
			port int
		}{"address": {own.Hostname(), port}, "service": {"kubernetes.default.svc", 443}} {
			externalName(ctx, mallory, name, to.host)
			shouldBeUnavailable(ctx, mallory, aggregate(ctx, mallory, name+".example.com", name, int32(to.port)))
		}
	})

	Context("by an aggregated API", func() {
		const (
			group = "reviews.example.com"
			path  = "/apis/" + group + "/v1/reviews"
		)
		var turn atomic.Value // of type http.HandlerFunc

		BeforeAll(func(ctx SpecContext) {
			kit.UsePodNetwork(ctx)
			turn.Store(http.NotFoundHandler())
			server := listen(kit.NextPodAddress()+":0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == path { // others ask whether the API is available
					turn.Load().(http.HandlerFunc)(w, r)
				}
			}))
			backend(ctx, mallory, "backend", server.Addr().String())
			leadTo(ctx, mallory, "backend", server.AddrPort)
			shouldBecomeAvailable(ctx, mallory, aggregate(ctx, mallory, group, "backend", 443))
		})

		attack("more calls of an aggregated API as a webhook than the tenant may have writes"+where,
			"idea: the limits of requests are not for the control plane itself", func(ctx SpecContext) {
				calls := kit.Validating("calls", itself(path), creations)
				calls.Webhooks[0].TimeoutSeconds = new(int32(30))
				kit.Temporarily(ctx, mallory.Client, times(3*fewest, calls))
				Expect(refusal(ctx, mallory, settings)).To(HaveOccurred(), "the answer is no review")

				var running atomic.Int32
				end := make(chan struct{})
				turn.Store(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					running.Add(1)
					<-end
				}))
				refused := make(chan error, 1)
				go func() { refused <- mallory.Client.Create(ctx, settings.DeepCopy()) }()
				shouldBeThrottled(ctx, mallory, fmt.Sprintf("of the kind webhook were in flight than the limit of %d", fewest))
				Expect(running.Load()).To(BeNumerically("==", fewest))
				close(end)
				Expect(<-refused).To(HaveOccurred())
			})

		attack("the answers of an aggregated API as a webhook, without an end and nested 9,000 deep"+where,
			"idea: the limits of answers are not for the apiserver itself", func(ctx SpecContext) {
				const most, levels = 100, 9_000 // megabytes, some of which are on their way
				// Of another kind than what other webhooks, deleted just before, are for.
				secret := &corev1.Secret{ObjectMeta: settings.ObjectMeta}
				ofSecrets := kit.ForRequests("", "secrets", admissionregistrationv1.Create)
				kit.Temporarily(ctx, mallory.Client, kit.Validating("answers", itself(path), ofSecrets))
				var sent atomic.Int32
				turn.Store(endlessAnswer(&sent))
				Expect(refusal(ctx, mallory, secret)).To(MatchError(ContainSubstring("answers with more than")))
				Expect(sent.Load()).To(BeNumerically("<", most))
				turn.Store(answerWith("application/json", []byte(strings.Repeat(`{"a":`, levels)+"0"+strings.Repeat("}", levels))))
				Expect(refusal(ctx, mallory, secret)).To(MatchError(ContainSubstring("nested deeper")))
			})
	})
}

// times makes a number of equal webhooks of one.
func times(number int, one *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1.ValidatingWebhookConfiguration {
	for i := 1; i < number; i++ {
		again := one.Webhooks[0]
		again.Name = fmt.Sprintf("%d.%s", i, again.Name)
		one.Webhooks = append(one.Webhooks, again)
	}
	return one
}

// reviewDefinition defines a kind of requests to webhooks as one of objects.
func reviewDefinition(group, kind string) *apiextensionsv1.CustomResourceDefinition {
	crd := crdOf(group, nil)
	singular := strings.ToLower(kind)
	crd.Name = singular + "s." + group
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: kind}
	crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, an attack"}
	crd.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
	}
	return crd
}

// nameAll gives objects of a definition names, which requests to webhooks do not have.
func nameAll(ctx context.Context, t *local.Tenant, crd *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	creations := kit.ForRequests(crd.Spec.Group, crd.Spec.Names.Plural, admissionregistrationv1.Create)
	mutateBy(ctx, t, crd.Name, creations[0], admissionregistrationv1.Mutation{
		PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: `Object{metadata: Object.metadata{generateName: "made-"}}`},
	})
}
