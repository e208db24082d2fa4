package hosted_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	discovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	controlplaneadmission "k8s.io/kubernetes/pkg/controlplane/apiserver/admission"
	kubeapiserveradmission "k8s.io/kubernetes/pkg/kubeapiserver/admission"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// admissionChain is the chain of plugins that an apiserver has by default.
type admissionChain interface {
	admission.MutationInterface
	admission.ValidationInterface
}

// newAdmission returns a chain on the informers of a factory, which are to be
// started afterwards.
func newAdmission(config *rest.Config, factory informers.SharedInformerFactory, stop <-chan struct{}) (admissionChain, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	plugins := controlplaneadmission.Config{
		ExternalInformers: factory, LoopbackClientConfig: config, APIResourceConfig: serverstorage.NewResourceConfig(),
	}
	special, err := plugins.New(nil, nil, webhook.NewDefaultServiceResolver(), nil)
	if err != nil {
		return nil, err
	}
	initializers := append(admission.PluginInitializers{ // the quota plugin needs this order
		initializer.NewAPIServerIDInitializer(""),
		initializer.New(client, objects, factory, authorizerfactory.NewAlwaysAllowAuthorizer(), utilfeature.DefaultFeatureGate,
			compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent), stop,
			restmapper.NewDeferredDiscoveryRESTMapper(discovery.NewMemCacheClient(client.Discovery()))),
		kubeapiserveradmission.NewPluginInitializer(),
	}, special...)
	options := kubeoptions.NewAdmissionOptions().GenericAdmission
	names := slices.DeleteFunc(slices.Clone(options.RecommendedPluginOrder), options.DefaultOffPlugins.Has)
	provider, err := admission.ReadAdmissionConfiguration(names, "", apiruntime.NewScheme())
	if err != nil {
		return nil, err
	}
	chain, err := options.Plugins.NewFromPlugins(names, provider, initializers, options.Decorators)
	if err != nil {
		return nil, err
	}
	return chain.(admissionChain), nil
}

// admit passes the creation of a pod through a chain.
func admit(ctx context.Context, chain admissionChain, pod *core.Pod) error {
	attributes := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), pod.Namespace, pod.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "user"})
	schemes := admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)
	if err := chain.Admit(ctx, attributes, schemes); err != nil {
		return err
	}
	return chain.Validate(ctx, attributes, schemes)
}

func internalPod(namespace, name string) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "c", Image: "registry.k8s.io/pause"}}},
	}
}

// TestAdmissionOnViews: the unmodified plugins decide by what views have, and
// see the changes.
func TestAdmissionOnViews(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "admission-views"})
	client := clientOf(t, plane.RESTConfig())
	factory := viewsOf(t, plane.Name()).NewFactory()
	stop := make(chan struct{})
	defer close(stop)
	chain, err := newAdmission(plane.RESTConfig(), factory, stop)
	g.Expect(err).NotTo(HaveOccurred())
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	pod := internalPod("default", "web")
	g.Expect(admit(t.Context(), chain, pod)).To(Succeed())
	g.Expect(pod.Spec.ServiceAccountName).To(Equal("default"))
	g.Expect(pod.Spec.Volumes).To(HaveLen(1))
	g.Expect(pod.Spec.Tolerations).To(HaveLen(2))
	g.Expect(*pod.Spec.Priority).To(BeZero())
	g.Expect(admit(t.Context(), chain, internalPod("nowhere", "web"))).To(MatchError(ContainSubstring(`namespaces "nowhere" not found`)))

	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}}}
	_, err = client.CoreV1().LimitRanges("default").Create(t.Context(), limits, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (core.ResourceList, error) {
		pod := internalPod("default", "web")
		err := admit(t.Context(), chain, pod)
		return pod.Spec.Containers[0].Resources.Requests, err
	}, soon, tick).Should(HaveLen(1))

	rejectByPolicy(t, client)
	g.Eventually(func() error { return admit(t.Context(), chain, internalPod("default", "forbidden")) }, soon, tick).
		Should(MatchError(ContainSubstring("not this one")))
	g.Expect(admit(t.Context(), chain, internalPod("default", "web"))).To(Succeed())
	g.Expect(client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), "names", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error { return admit(t.Context(), chain, internalPod("default", "forbidden")) }, soon, tick).Should(Succeed())
}

func rejectByPolicy(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	fail := admissionregistrationv1.Fail
	_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "names"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "object.metadata.name != 'forbidden'", Message: "not this one"}},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "names"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: "names", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// BenchmarkAdmission tells what the default admission chain of one more tenant
// costs on stock informers and on views: idle, and after a pod was admitted.
// Run it with -benchtime 1x.
func BenchmarkAdmission(b *testing.B) {
	plane, err := shared.Run(hosted.Spec{Name: "admission-costs"})
	if err != nil {
		b.Fatal(err)
	}
	<-plane.Ready()
	b.Cleanup(func() { _ = plane.Stop(context.Background()) })
	stock := func() informers.SharedInformerFactory {
		client, err := kubernetes.NewForConfig(plane.RESTConfig())
		if err != nil {
			b.Fatal(err)
		}
		return informers.NewSharedInformerFactory(client, 0)
	}
	source := runFeed(b)
	onViews := func() informers.SharedInformerFactory {
		return views.New(b.Context(), source, plane.Name(), views.Options{}).NewFactory()
	}
	for name, newFactory := range map[string]func() informers.SharedInformerFactory{"stock": stock, "views": onViews} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				measureAdmission(b, plane, newFactory)
			}
		})
	}
}

func measureAdmission(b *testing.B, plane *hosted.ControlPlane, newFactory func() informers.SharedInformerFactory) {
	b.Helper()
	const tenants = 20
	stop := make(chan struct{})
	defer close(stop)
	baseHeap, baseGoroutines := footprint()
	chains := make([]admissionChain, tenants)
	for i := range chains {
		factory := newFactory()
		var err error
		if chains[i], err = newAdmission(plane.RESTConfig(), factory, stop); err != nil {
			b.Fatal(err)
		}
		factory.Start(stop)
		factory.WaitForCacheSync(stop)
	}
	report := func(state string) {
		heap, goroutines := footprint()
		b.ReportMetric((heap-baseHeap)/tenants/(1<<20), fmt.Sprintf("%s-heap-MB/tenant", state))
		b.ReportMetric((goroutines-baseGoroutines)/tenants, fmt.Sprintf("%s-goroutines/tenant", state))
	}
	report("idle")
	for i := range chains {
		if err := admit(b.Context(), chains[i], internalPod("default", "web")); err != nil {
			b.Fatal(err)
		}
	}
	report("used")
	runtime.KeepAlive(chains)
}
