package admission

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// gate records the write of a request, and answers with an error instead of it.
type gate struct {
	tenant plugins.Tenant
	was    client.Object
	result error
	fails  error
}

func (g *gate) Write(ctx context.Context, tenant plugins.Tenant, _, was client.Object, write func(context.Context) error) error {
	if g.fails != nil {
		return g.fails
	}
	g.tenant, g.was, g.result = tenant, was, write(ctx)
	return g.result
}

var superNamespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
	Name:        "team-1-red-shop",
	Labels:      map[string]string{names.Converted: "team-1-red", names.VCName: "red", names.VCNamespace: "team"},
	Annotations: map[string]string{names.VCUID: "uid"},
}}

const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "team-1-red-shop", "labels": {"tenancy.x-k8s.io/converted": "team-1-red"}}}`

func podRequest(change ...func(*admission.Request)) admission.Request {
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(pod)},
	}}
	for _, f := range change {
		f(&r)
	}
	return r
}

func TestHandle(t *testing.T) {
	red := plugins.Tenant{Key: "team-1-red", Name: "red", Namespace: "team", UID: "uid"}
	cached := fake.NewClientBuilder().WithObjects(superNamespace).Build()
	empty := fake.NewClientBuilder().Build()
	dry := func(r *admission.Request) { r.DryRun = new(true) }
	update := func(r *admission.Request) { r.Operation, r.OldObject = admissionv1.Update, r.Object }
	byTenant := func(r *admission.Request) { r.UserInfo.Username = "system:serviceaccount:team-1-red:converted" }
	raw := func(kind, text string) func(*admission.Request) {
		return func(r *admission.Request) { r.Kind.Kind, r.Object.Raw = kind, []byte(text) }
	}
	for name, tc := range map[string]struct {
		request      admission.Request
		standby      bool
		cache, live  client.Reader
		fails        error
		code         int32
		says         string
		result       error // of the write
		tenant       plugins.Tenant
		hasWasObject bool
		full, stored bool // what the tenant stores is full; it was called
	}{
		"a creation":      {request: podRequest(), code: http.StatusOK, result: plugins.ErrAwaited, tenant: red},
		"an update":       {request: podRequest(update), code: http.StatusOK, result: plugins.ErrAwaited, tenant: red, hasWasObject: true},
		"a dry run":       {request: podRequest(dry), code: http.StatusOK, result: errDryRun, tenant: red},
		"a new namespace": {request: podRequest(), cache: empty, live: cached, code: http.StatusOK, result: plugins.ErrAwaited, tenant: red},
		"no namespace":    {request: podRequest(), cache: empty, live: empty, code: http.StatusServiceUnavailable, says: "not known yet"},
		"the platform's": {
			request: podRequest(raw("Pod", `{"metadata": {"name": "a", "namespace": "b"}}`)), code: http.StatusOK,
		},
		"a namespace": {
			request: podRequest(raw("Namespace", `{"metadata": {"name": "n", "labels": {"tenancy.x-k8s.io/converted": "k"}}}`)),
			code:    http.StatusOK, result: plugins.ErrAwaited, tenant: plugins.Tenant{Key: "k"},
		},
		"by the tenant":      {request: podRequest(byTenant), code: http.StatusOK, result: plugins.ErrAwaited, tenant: red, stored: true},
		"it stores too much": {request: podRequest(byTenant), full: true, code: http.StatusForbidden, says: "delete some", result: errNotStored, tenant: red, stored: true},
		"both are too much":  {request: podRequest(byTenant), full: true, fails: plugins.Reject("pods: used 3"), code: http.StatusForbidden, says: "pods: used 3"},
		"of a controller":    {request: podRequest(), full: true, code: http.StatusOK, result: plugins.ErrAwaited, tenant: red},
		"without its label":  {request: podRequest(byTenant, raw("Pod", `{"metadata": {"name": "a", "namespace": "b"}}`)), full: true, code: http.StatusForbidden, stored: true},
		"standby":            {request: podRequest(), standby: true, code: http.StatusServiceUnavailable, says: "this replica"},
		"no JSON":            {request: podRequest(raw("Pod", "{")), code: http.StatusBadRequest},
		"an unknown kind":    {request: podRequest(raw("Pond", pod)), code: http.StatusBadRequest},
		"too much":           {request: podRequest(), fails: plugins.Reject("pods: used 3"), code: http.StatusForbidden, says: "pods: used 3"},
		"a failed one":       {request: podRequest(), fails: errors.New("cannot tell"), code: http.StatusServiceUnavailable, says: "cannot tell"},
		"not an API object":  {request: podRequest(raw("Status", "{}")), code: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gate{fails: tc.fails}
			stored := false
			storage := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
				stored = true
				if tc.full {
					return admission.Denied("delete some")
				}
				return admission.Allowed("")
			})
			w := &Webhook{Gate: g, Storage: storage, Scheme: clientgoscheme.Scheme, Namespaces: cached, Live: empty, Active: func() bool { return !tc.standby }}
			if tc.cache != nil {
				w.Namespaces, w.Live = tc.cache, tc.live
			}
			got := w.Handle(t.Context(), tc.request)
			if got.Allowed != (tc.code == http.StatusOK) || got.Result.Code != tc.code || !strings.Contains(got.Result.Message, tc.says) {
				t.Errorf("got %+v", got.Result)
			}
			if !errors.Is(g.result, tc.result) || g.tenant != tc.tenant || (g.was != nil) != tc.hasWasObject {
				t.Errorf("wrote %+v", g)
			}
			if stored != tc.stored {
				t.Errorf("asked whether the tenant may store it: %t", stored)
			}
		})
	}
}
