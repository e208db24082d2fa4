package document_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
)

// hookIn makes the conversion webhook of a CRD the gateway.
func hookIn(t *testing.T, crd document.Object) {
	t.Helper()
	webhook := crd["spec"].(document.Object)["conversion"].(document.Object)["webhook"].(document.Object)
	var config document.ClientConfig
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(webhook["clientConfig"].(document.Object), &config); err != nil {
		t.Fatal(err)
	}
	super, err := document.Hook{URL: "https://gw.example.com/secret"}.Of(config)
	if err != nil {
		t.Fatal(err)
	}
	webhook["clientConfig"] = document.Hooked{ClientConfig: super}
}

// TestHook: the super cluster has the gateway, and the tenant what it has written.
func TestHook(t *testing.T) {
	ca := []byte("-----BEGIN CERTIFICATE-----\nZ2F0ZXdheQ==\n-----END CERTIFICATE-----\n")
	bundle := []byte("-----BEGIN CERTIFICATE-----\ndGVuYW50\n-----END CERTIFICATE-----\n")
	service := &apiextensionsv1.ServiceReference{Namespace: "shop", Name: "a", Path: new("/b"), Port: new(int32(8443))}
	for name, tenant := range map[string]document.ClientConfig{
		"a Service":             {Service: service},
		"a Service and a CA":    {Service: service, CABundle: bundle},
		"a URL":                 {URL: new("https://example.com/a/b")},
		"a URL and a CA":        {URL: new("https://example.com"), CABundle: bundle},
		"a CA that is no PEM":   {Service: service, CABundle: []byte("none")},
		"a CA alone":            {CABundle: bundle},
		"the gateway, it seems": {URL: new("https://gw.example.com/secret/e30")},
	} {
		for ofGateway, hook := range map[string]document.Hook{
			"with a CA":    {URL: "https://gw.example.com/secret", CA: ca},
			"without a CA": {URL: "https://gw.example.com/secret"},
		} {
			if name == "a CA alone" && hook.CA == nil {
				continue // where the super cluster's own CAs verify it, a part that is applied has no place
			}
			t.Run(name+" "+ofGateway, func(t *testing.T) {
				super, err := hook.Of(tenant)
				if err != nil {
					t.Fatal(err)
				}
				if super.Service != nil || super.URL != nil && !strings.HasPrefix(*super.URL, hook.URL+"/") || bytes.Contains(super.CABundle, []byte("dGVuYW50")) {
					t.Errorf("the super cluster has %+v", super)
				}
				if !bytes.HasPrefix(super.CABundle, hook.CA) {
					t.Errorf("the CA of the gateway is not in %s", super.CABundle)
				}
				if diff := cmp.Diff(tenant, document.Unhook(super)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

func TestHookIsBounded(t *testing.T) {
	_, err := document.Hook{URL: "https://gw.example.com"}.Of(document.ClientConfig{URL: new("https://a/" + strings.Repeat("b", document.MaxTarget))})
	if err == nil {
		t.Error("no error")
	}
}
