package kit

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// ConversionWebhook is a conversion webhook in a pod of a converted tenant.
type ConversionWebhook struct {
	*Webhook

	mu       sync.Mutex
	requests []apiextensionsv1.ConversionRequest
}

// Answer is what a conversion webhook responds: it fills the response, which has the
// UID and no objects, or writes another one.
type Answer func(w http.ResponseWriter, path string, review *apiextensionsv1.ConversionReview)

// StartConversionWebhook starts a conversion webhook in a namespace of a converted
// tenant, until the container of specs ends.
func StartConversionWebhook(
	ctx context.Context, super *local.SuperCluster, t *local.Tenant, namespace, name string, answer Answer,
) *ConversionWebhook {
	GinkgoHelper()
	c := &ConversionWebhook{Webhook: &Webhook{Namespace: namespace, Name: name}}
	c.start(ctx, super, t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		review := &apiextensionsv1.ConversionReview{}
		Expect(json.NewDecoder(r.Body).Decode(review)).To(Succeed())
		c.mu.Lock()
		c.requests = append(c.requests, *review.Request.DeepCopy())
		c.mu.Unlock()
		review.Response = &apiextensionsv1.ConversionResponse{
			UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
		}
		answer(w, r.URL.Path, review)
	}))
	return c
}

// Requests returns those since the last time, and forgets them.
func (c *ConversionWebhook) Requests() []apiextensionsv1.ConversionRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// At leads to a path of the webhook.
func (c *ConversionWebhook) At(path string) *apiextensionsv1.WebhookClientConfig {
	return &apiextensionsv1.WebhookClientConfig{CABundle: c.CA, Service: &apiextensionsv1.ServiceReference{
		Namespace: c.Namespace, Name: c.Name, Path: &path, Port: new(int32(443)),
	}}
}

// Rename converts between v1, whose spec has a text, and v2, whose spec calls it a
// message.
func Rename(w http.ResponseWriter, review *apiextensionsv1.ConversionReview) {
	for _, raw := range review.Request.Objects {
		object := Renamed(raw.Raw, review.Request.DesiredAPIVersion)
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: object})
	}
	Respond(w, review)
}

// Renamed returns one object in another version.
func Renamed(raw []byte, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	Expect(object.UnmarshalJSON(raw)).To(Succeed())
	names := map[string]string{"text": "message", "message": "text"}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	for name, value := range spec {
		if other, ok := names[name]; ok {
			delete(spec, name)
			spec[other] = value
		}
	}
	object.Object["spec"] = spec
	object.SetAPIVersion(version)
	return object
}

// Respond writes the response of a review.
func Respond(w http.ResponseWriter, review *apiextensionsv1.ConversionReview) {
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) //nolint:errchkjson // the apiserver sees what is missing
}

// Convertible is a CRD of gadgets in namespaces, with the versions v1 and v2, of
// which one is stored, and a conversion webhook.
func Convertible(group, stored string, at *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group}}
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	for version, field := range map[string]string{"v1": "text", "v2": "message"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "string"}},
				}},
			}},
		})
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: at, ConversionReviewVersions: []string{"v1"},
		},
	}
	return crd
}

// Gadget is an object of a CRD that Convertible returns.
func Gadget(group, version, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": "Gadget"}}
	object.SetNamespace(namespace)
	object.SetName(name)
	if spec != nil {
		object.Object["spec"] = spec
	}
	return object
}
