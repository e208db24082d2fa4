package addons_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	endless = 1 << 30
	padding = "xxxxxxxxxxxxxxxx"
	system  = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}}`
)

// TestAnswersOfTenants: what a tenant's apiserver answers to reads and writes
// of addons is bounded, and leads nowhere else.
func TestAnswersOfTenants(t *testing.T) {
	platform := hostile(t)
	reads := func(r *http.Request) bool { return r.Method == http.MethodGet }
	writes := func(r *http.Request) bool { return r.Method == http.MethodPatch }
	for name, tt := range map[string]struct {
		match  local.Match
		answer local.Answer
		want   string
	}{
		"a read that redirects":     {reads, local.Redirect(platform.URL()), "redirects"},
		"a read without end":        {reads, local.Endless(http.StatusOK, `{"kind":"`, padding, endless), "more than"},
		"a read that is compressed": {reads, local.GzipBomb(http.StatusOK, `{"kind":"`, padding, endless), "Content-Encoding"},
		"an error without end":      {reads, local.Endless(http.StatusForbidden, "", padding, endless), "more than"},
		"a write that redirects":    {writes, local.Redirect(platform.URL()), "redirects"},
		"a write without end":       {writes, local.Endless(http.StatusOK, `{"kind":"`, padding, endless), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := hostile(t)
			tenant.On(local.Everything, local.Status(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			tenant.On(local.Path("/api/v1/namespaces/kube-system"), local.Status(http.StatusOK, system))
			tenant.On(tt.match, tt.answer)
			_, err := reconcilerOf(t, tenant).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "red"}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one that says %q", err, tt.want)
			}
			if asked := platform.Seen(local.Everything); asked != 0 {
				t.Errorf("%d requests went where the tenant's apiserver sent them", asked)
			}
		})
	}
}

// hostile returns an apiserver that answers only by its rules.
func hostile(t *testing.T) *local.Hostile {
	t.Helper()
	h, err := local.NewHostile(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// reconcilerOf returns a reconciler of one addon, a ConfigMap, for one tenant.
func reconcilerOf(t *testing.T, tenant *local.Hostile) *addons.Reconciler {
	t.Helper()
	kubeconfig, err := tenant.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, tenancyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}}
	vc.Status.ClusterNamespace = "default-000000-red"
	vc.Status.Conditions = []metav1.Condition{{Type: tenancyv1alpha1.ConditionControlPlaneReady, Status: metav1.ConditionTrue}}
	super := fake.NewClientBuilder().WithScheme(scheme).WithObjects(vc, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret},
		Data:       map[string][]byte{names.AdminKubeconfigKey: kubeconfig},
	}).Build()
	capabilities := func(*tenancyv1alpha1.VirtualCluster) provisioner.Capabilities { return provisioner.Capabilities{} }
	return &addons.Reconciler{Client: super, Capabilities: capabilities, Addons: []addons.Addon{{
		Name: "dns",
		Objects: func(*tenancyv1alpha1.VirtualCluster) ([]*unstructured.Unstructured, error) {
			return []*unstructured.Unstructured{{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": metav1.NamespaceSystem, "name": "coredns"},
			}}}, nil
		},
	}}}
}
