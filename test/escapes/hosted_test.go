package escapes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// request sends a request as a tenant's admin and returns the status code and
// the body of the response. The headers are pairs of a name and a value.
func request(
	ctx context.Context, config *rest.Config, method, path string, body io.Reader, headers ...string,
) (code int, text string) {
	GinkgoHelper()
	sender, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	sent, err := http.NewRequestWithContext(ctx, method, config.Host+path, body)
	Expect(err).NotTo(HaveOccurred())
	sent.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		sent.Header.Set(headers[i], headers[i+1])
	}
	response, err := sender.Do(sent)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(response.Body.Close()).To(Succeed()) }()
	data, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(data)
}

// sendSoon sends a request of a media type for which a process needs no second.
func sendSoon(ctx context.Context, t *local.Tenant, method, path, mediaType string, body io.Reader) (code int, text string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, kit.Soon)
	defer cancel()
	return request(ctx, t.Config, method, path, body, "Content-Type", mediaType)
}

var _ = Describe("The process of hosted control planes", Ordered, func() {
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) { mallory = tenant(ctx, kit.WithIsolation(tenancyv1alpha1.IsolationDedicated)) })

	for _, hidden := range []struct {
		text  string
		paths []string
	}{
		{"metrics of all control planes", []string{"/metrics", "/metrics/slis", "/metrics/cadvisor", "/metrics/resources"}},
		{"profiles and flags of the process", []string{
			"/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/flags/v", "/debug/api_priority_and_fairness/dump_requests",
		}},
		{"flags, configuration and state of the process", []string{"/flagz", "/statusz", "/configz"}},
		{"logs of the platform's machine", []string{"/logs", "/logs/", "/logs/kube-apiserver.log"}},
		{"health of what listens on loopback", []string{"/api/v1/componentstatuses", "/api/v1/componentstatuses/scheduler"}},
	} {
		attack(hidden.text, "review: /metrics of a hosted control plane", func(ctx SpecContext) {
			for _, path := range hidden.paths {
				code, _ := request(ctx, mallory.Config, http.MethodGet, path, nil)
				Expect(code).To(Equal(http.StatusNotFound), path)
			}
		})
	}

	It("still shows metrics to the super cluster's admin", func(ctx SpecContext) {
		code, text := request(ctx, super.Config, http.MethodGet, "/metrics", nil)
		Expect(code).To(Equal(http.StatusOK))
		Expect(text).To(ContainSubstring("apiserver_request_total"))
	})

	attack("the name of the platform's machine in Leases", "idea: kube-apiserver publishes its host name", func(ctx SpecContext) {
		machine, err := os.Hostname()
		Expect(err).NotTo(HaveOccurred())
		leases := &coordinationv1.LeaseList{}
		Expect(mallory.Client.List(ctx, leases)).To(Succeed())
		for _, lease := range leases.Items {
			Expect(lease.Labels).NotTo(HaveKeyWithValue(corev1.LabelHostname, machine))
		}
	})

	attack("the store's address in health checks", "idea: verbose health checks", func(ctx SpecContext) {
		for _, path := range []string{"/readyz?verbose", "/livez?verbose", "/healthz?verbose", "/version", "/openapi/v2"} {
			Eventually(func() int { // a check of a busy store may fail
				code, text := request(ctx, mallory.Config, http.MethodGet, path, nil)
				Expect(text).NotTo(Or(ContainSubstring("client.sock"), ContainSubstring(super.Dir)), path)
				return code
			}).Should(Equal(http.StatusOK), path)
		}
	})
})

var _ = Describe("The store of hosted control planes", Ordered, func() {
	const (
		ns        = "store"
		half      = 512 << 10
		limit     = "limited to 4Mi"
		mostWrite = 64 // requests that no limit lets through
	)
	var (
		host           *local.SuperCluster
		mallory, alice *local.Tenant
	)

	connect := func(ctx context.Context, name string, limits *tenancyv1alpha1.ControlPlaneLimits) *local.Tenant {
		GinkgoHelper()
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Limits: limits}
		t, err := host.NewTenant(ctx, vc)
		Expect(err).NotTo(HaveOccurred())
		kit.Create(ctx, t.Client, kit.Namespace(ns))
		return t
	}

	BeforeAll(func(ctx SpecContext) {
		var err error
		host, err = local.Start(ctx, kit.TempDir(), "--agent=false", "--nodes=0",
			"--tenant-storage=4Mi", "--tenant-objects=400", "--tenant-writes=1Mi")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(host.Stop()).To(Succeed()) })
		mallory, alice = connect(ctx, "mallory", nil), connect(ctx, "alice", nil)
	})

	// blob is a ConfigMap of a size.
	blob := func(name string, size int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string]string{"x": strings.Repeat("x", size)},
		}
	}
	// untilRejected does something until it is rejected.
	untilRejected := func(do func(i int) error) error {
		GinkgoHelper()
		for i := range mostWrite {
			if err := do(i); err != nil {
				return err
			}
		}
		Fail("everything was let through")
		return nil
	}
	full := func(ctx context.Context) {
		GinkgoHelper()
		Expect(untilRejected(func(i int) error {
			err := mallory.Client.Create(ctx, blob(fmt.Sprintf("full-%d", i), half))
			return client.IgnoreAlreadyExists(err)
		})).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(limit))))
	}
	aliceWorks := func(ctx context.Context, name string) {
		GinkgoHelper()
		cm := blob(name, half)
		kit.Create(ctx, alice.Client, cm)
		Expect(alice.Client.Delete(ctx, cm)).To(Succeed())
	}

	attack("more ConfigMaps than the platform stores", "review: 690 ConfigMaps of 1 MB", func(ctx SpecContext) {
		full(ctx)
		aliceWorks(ctx, "beside")
	})

	attack("an object that grows when the store is full", "idea: a limit of creations alone", func(ctx SpecContext) {
		small := blob("grows", 10)
		kit.Create(ctx, mallory.Client, small)
		full(ctx)
		small.Data["x"] = strings.Repeat("x", half)
		Expect(mallory.Client.Update(ctx, small)).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(limit))))
	})

	attack("custom resources when the store is full", "idea: a limit of built-in kinds alone", func(ctx SpecContext) {
		definition := widgets()
		kit.Create(ctx, mallory.Client, definition)
		full(ctx)
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"namespace": ns, "name": "w"}, "x": strings.Repeat("x", half),
		}}
		Eventually(func() error { return mallory.Client.Create(ctx, widget.DeepCopy()) }).
			Should(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(limit))))
	})

	attack("Events and Leases when the store is full", "idea: kinds that are stored apart from others", func(ctx SpecContext) {
		full(ctx)
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: ns, Name: "e"},
			InvolvedObject: corev1.ObjectReference{Namespace: ns}, Message: "m",
		}
		event.Annotations = map[string]string{"x": strings.Repeat("x", 250<<10)}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "l", Annotations: event.Annotations}}
		for i, obj := range []client.Object{event, lease} {
			Expect(untilRejected(func(int) error {
				next := obj.DeepCopyObject().(client.Object)
				next.SetName("")
				next.SetGenerateName(fmt.Sprintf("n%d-", i))
				return mallory.Client.Create(ctx, next)
			})).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(limit))))
		}
	})

	attack("a full store, as the control plane's own user", "idea: a cluster admin impersonates system:apiserver", func(ctx SpecContext) {
		full(ctx)
		config := rest.CopyConfig(mallory.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:apiserver", Groups: []string{"system:masters"}}
		forged, err := local.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		big := kit.Namespace("forged")
		big.Annotations = map[string]string{"x": strings.Repeat("x", 250<<10)}
		Expect(untilRejected(func(i int) error {
			next := big.DeepCopy()
			next.Name = fmt.Sprintf("forged-%d", i)
			return forged.Create(ctx, next)
		})).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(limit))))
	})

	It("is emptied by its tenant when it is full", func(ctx SpecContext) {
		held := blob("held", 10)
		held.Finalizers = []string{"example.com/held"}
		Expect(client.IgnoreAlreadyExists(mallory.Client.Delete(ctx, blob("full-0", half)))).To(Succeed())
		kit.Create(ctx, mallory.Client, held)
		full(ctx)
		Expect(mallory.Client.Delete(ctx, held)).To(Succeed(), "which grows the object by the time of its deletion")
		Expect(mallory.Client.Delete(ctx, kit.Namespace(ns))).To(Succeed())
		Expect(mallory.Client.Patch(ctx, held, client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`)))).
			To(Succeed())
		kit.ShouldVanish(ctx, mallory.Client, kit.Namespace(ns))
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		// For a moment, the apiserver may take the namespace for the one before, and the space for occupied.
		Eventually(mallory.Client.Create).WithContext(ctx).WithArguments(blob("again", half)).Should(Succeed())
	})

	attack("more objects than the platform caches", "idea: many small objects", func(ctx SpecContext) {
		for i := 0; ; i++ {
			err := mallory.Client.Create(ctx, blob(fmt.Sprintf("small-%d", i), 1))
			if err != nil {
				Expect(err).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("limited to 400 objects of all kinds"))))
				break
			}
			Expect(i).To(BeNumerically("<", 400))
		}
		aliceWorks(ctx, "among-many")
	})

	attack("old revisions of one object that fill the store", "idea: etcd keeps what is overwritten until it is compacted", func(ctx SpecContext) {
		// At a rate that each machine exceeds.
		writer := connect(ctx, "writer", &tenancyv1alpha1.ControlPlaneLimits{WriteBytesPerSecond: new(resource.MustParse("256Ki"))})
		path := "/api/v1/namespaces/" + ns + "/configmaps/"
		code := 0
		for i := 0; i < mostWrite && code != http.StatusTooManyRequests; i++ {
			text := fmt.Sprintf(`{"metadata":{"name":"over"},"data":{"x":"%s%d"}}`, strings.Repeat("x", 900<<10), i)
			method, to := http.MethodPut, path+"over"
			if i == 0 {
				method, to = http.MethodPost, path
			}
			var answer string
			code, answer = request(ctx, writer.Config, method, to, strings.NewReader(text))
			Expect(code).To(BeElementOf(http.StatusOK, http.StatusCreated, http.StatusTooManyRequests), answer)
		}
		Expect(code).To(Equal(http.StatusTooManyRequests))
		aliceWorks(ctx, "beside-writes")
	})
})

// widgets is a definition of custom resources without a schema.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}
