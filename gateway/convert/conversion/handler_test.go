package conversion_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/conversion"
	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/index"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const key = "team-1a2b3c-red"

// superCRD is a CRD of the tenant in the super cluster, whose webhook is the
// gateway.
func superCRD(t *testing.T, tenant document.ClientConfig) *resources.CRD {
	t.Helper()
	hook, err := conversion.Gateway{URL: "https://gw.example.com", Key: []byte("secret")}.Hook(key, "gadgets.example.com")
	if err != nil {
		t.Fatal(err)
	}
	config, err := hook.Of(tenant)
	if err != nil {
		t.Fatal(err)
	}
	group := names.ConvertedGroup(key) + "example.com"
	crd := &resources.CRD{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group, Labels: map[string]string{names.Converted: key}}}
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget", ListKind: "GadgetList"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v2", Served: true}}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &config, ConversionReviewVersions: []string{"v1beta1", "v1"}},
	}
	return crd
}

// webhook is one of a tenant: it notes what it is shown, and adds a label.
func webhook(t *testing.T, label string) (document.ClientConfig, *bytes.Buffer) {
	t.Helper()
	shown := &bytes.Buffer{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(review)
		_ = json.NewEncoder(shown).Encode(review)
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			object, _ := document.ParseTrusted(raw.Raw)
			object["apiVersion"] = review.Request.DesiredAPIVersion
			metadata := object["metadata"].(document.Object)
			metadata["labels"] = document.Object{label: "b"}
			metadata["finalizers"] = []any{"example.com/held"}
			data, _ := document.Write(object)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: data})
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	return document.ClientConfig{URL: &server.URL, CABundle: certificateOf(server)}, shown
}

// certificateOf returns what verifies a server, in PEM.
func certificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// call has a handler convert an object, by the URL in a CRD.
func call(t *testing.T, h http.Handler, url string) (code int, response *apiextensionsv1.ConversionResponse) {
	t.Helper()
	group := names.ConvertedGroup(key) + "example.com"
	body := `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{"uid":"r","desiredAPIVersion":"` + group + `/v2","objects":[` +
		`{"apiVersion":"` + group + `/v1","kind":"Gadget","metadata":{"name":"a","uid":"1","labels":{"old":"","tenancy.x-k8s.io/kept":"c"}},"spec":{"n":9007199254740993}}]}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimPrefix(url, "https://gw.example.com"), strings.NewReader(body))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	review := &apiextensionsv1.ConversionReview{}
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), review); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, review.Response
}

func handler(crd *resources.CRD, served, gone bool) *conversion.Handler {
	tenants := conversion.NewTenants()
	if served {
		tenants.Set(conversion.Tenant{
			Namer: naming.Namer{Key: key, Namespaces: index.New()}, API: http.NotFoundHandler(), Network: egress.Unrestricted{},
		})
	}
	read := func(context.Context, string) (*resources.CRD, error) { return crd.DeepCopy(), nil }
	return conversion.NewHandler(tenants, resources.New(), read, func(context.Context, string) bool { return gone })
}

// TestConvertForAdmission: an object with the tenant's names is converted as the super
// cluster's are.
func TestConvertForAdmission(t *testing.T) {
	config, _ := webhook(t, "a")
	own := superCRD(t, config)
	own.Spec.Group = "example.com"
	simple := own.DeepCopy()
	simple.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	tenants := conversion.NewTenants()
	gadget := &unstructured.Unstructured{Object: document.Object{
		"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": document.Object{"name": "a", "uid": "1"},
	}}
	v2 := schema.GroupVersion{Group: "example.com", Version: "v2"}
	if _, err := tenants.Convert(t.Context(), key, own, gadget, v2); err == nil {
		t.Error("the webhook of a tenant that is not served was called")
	}
	tenants.Set(conversion.Tenant{
		Namer: naming.Namer{Key: key, Namespaces: index.New()}, API: http.NotFoundHandler(), Network: egress.Unrestricted{},
	})
	for name, tt := range map[string]struct {
		crd    *resources.CRD
		labels map[string]string
	}{"with a webhook": {own, map[string]string{"a": "b"}}, "without": {simple, nil}} {
		t.Run(name, func(t *testing.T) {
			converted, err := tenants.Convert(t.Context(), key, tt.crd, gadget, v2)
			if err != nil {
				t.Fatal(err)
			}
			if got := converted.GroupVersionKind(); got != v2.WithKind("Gadget") || !maps.Equal(converted.GetLabels(), tt.labels) {
				t.Errorf("got %s with labels %v", got, converted.GetLabels())
			}
			if gadget.GetAPIVersion() != "example.com/v1" {
				t.Error("the object was changed")
			}
		})
	}
}

// TestConvert: the webhook is shown what the tenant knows, and the super cluster gets
// what it expects.
func TestConvert(t *testing.T) {
	config, shown := webhook(t, "a")
	crd := superCRD(t, config)
	_, response := call(t, handler(crd, true, false), *crd.Spec.Conversion.Webhook.ClientConfig.URL)
	if response.Result.Status != metav1.StatusSuccess || response.UID != "r" || len(response.ConvertedObjects) != 1 {
		t.Fatalf("got %+v", response)
	}
	want := `{"apiVersion":"` + crd.Spec.Group + `/v2","kind":"Gadget","metadata":{"labels":{"a":"b","tenancy.x-k8s.io/kept":"c"},"name":"a","uid":"1"},"spec":{"n":9007199254740993}}`
	if got := string(response.ConvertedObjects[0].Raw); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if text := shown.String(); strings.Contains(text, names.ConvertedGroup(key)) || strings.Contains(text, names.Domain) || !strings.Contains(text, `"old":""`) {
		t.Errorf("the webhook is shown %s", text)
	}
}

func TestConvertFails(t *testing.T) {
	reserved, _ := webhook(t, names.Converted)
	unreachable := document.ClientConfig{URL: new("https://127.0.0.1:1")}
	for name, tt := range map[string]struct {
		config       document.ClientConfig
		served, gone bool
		want         string
	}{
		"a label of the platform":     {reserved, true, false, "the platform's"},
		"a webhook that is gone":      {unreachable, true, false, "connection refused"},
		"a tenant that is not served": {unreachable, false, false, "not known yet"},
		"a tenant that is deleted":    {unreachable, false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			crd := superCRD(t, tt.config)
			_, response := call(t, handler(crd, tt.served, tt.gone), *crd.Spec.Conversion.Webhook.ClientConfig.URL)
			if text := response.Result.Message; (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) || strings.Contains(text, key) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
			if tt.want == "" && (len(response.ConvertedObjects) != 1 || !bytes.Contains(response.ConvertedObjects[0].Raw, []byte("example.com/v2"))) {
				t.Errorf("got %s", response.ConvertedObjects)
			}
		})
	}
}

// TestSecret: only the URL of the CRD in the super cluster is accepted.
func TestSecret(t *testing.T) {
	config, shown := webhook(t, "a")
	crd := superCRD(t, config)
	url := *crd.Spec.Conversion.Webhook.ClientConfig.URL
	for _, path := range []string{
		names.ConversionPath, names.ConversionPath + key, url[:len(url)-1], url + "A", strings.Replace(url, key, "other", 1),
		strings.Replace(url, "gadgets", "widgets", 1), names.ConversionPath + key + "/gadgets.example.com/",
	} {
		if code, _ := call(t, handler(crd, true, false), path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if shown.Len() > 0 {
		t.Errorf("the webhook is shown %s", shown)
	}
}
