package convert

import (
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/gateway/convert/conversion"
	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestConversionPolicy: without the policy, a CRD keeps a webhook and gets none.
func TestConversionPolicy(t *testing.T) {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	crds := resources.New()
	for plural, strategy := range map[string]apiextensionsv1.ConversionStrategyType{
		"hooked": apiextensionsv1.WebhookConverter, "plain": apiextensionsv1.NoneConverter,
	} {
		crd := &resources.CRD{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.Converted: key}}}
		crd.Spec.Group, crd.Spec.Names.Plural = names.ConvertedGroup(key)+"example.com", plural
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: strategy}
		if strategy == apiextensionsv1.WebhookConverter {
			crd.Spec.Conversion.Webhook = &apiextensionsv1.WebhookConversion{ClientConfig: &document.ClientConfig{}}
		}
		crds.Set(crd)
	}
	for name, tt := range map[string]struct {
		method, path    string
		none            bool
		allowed, forbid bool
	}{
		"created like another":    {http.MethodPost, path, false, false, true},
		"created, by the policy":  {http.MethodPost, path, false, true, false},
		"created without one":     {http.MethodPost, path, true, false, false},
		"added":                   {http.MethodPut, path + "/plain.example.com", false, false, true},
		"added, by the policy":    {http.MethodPut, path + "/plain.example.com", false, true, false},
		"added to an unknown one": {http.MethodPatch, path + "/unknown.example.com", false, false, true},
		"changed":                 {http.MethodPut, path + "/hooked.example.com", false, false, false},
		"removed":                 {http.MethodPut, path + "/hooked.example.com", true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := callOf(t, tt.method, tt.path)
			if err != nil {
				t.Fatal(err)
			}
			c.CRDs, c.AllowsConversionWebhooks, c.Conversion = crds, tt.allowed, conversion.Gateway{URL: "https://gw.example.com", Key: []byte("a")}
			crd := document.Object{"metadata": document.Object{"name": "hooked.example.com"}, "spec": document.Object{"conversion": document.Object{
				"strategy": "Webhook", "webhook": document.Object{"clientConfig": document.Object{"url": "https://example.com/"}},
			}}}
			if tt.none {
				crd["spec"] = document.Object{"conversion": document.Object{"strategy": "None"}}
			}
			err = c.hook(crd)
			if apierrors.IsForbidden(err) != tt.forbid || err != nil && !strings.Contains(err.Error(), "spec.policy.allowConversionWebhooks") {
				t.Errorf("got %v", err)
			}
		})
	}
}
