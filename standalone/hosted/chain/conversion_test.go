package chain_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// newConverter starts a webhook that converts custom resources, and tells in
// their spec who did. It is the Service hook in the namespace team.
func newConverter(t *testing.T, tenant string) (ca []byte, network *pods) {
	t.Helper()
	g := NewWithT(t)
	authority, err := pki.NewAuthority("converter", time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Server("converter", []string{"hook.team.svc"}, nil, time.Hour, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	g.Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "not a review", http.StatusBadRequest)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, each := range review.Request.Objects {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(each.Raw); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			object.SetAPIVersion(review.Request.DesiredAPIVersion)
			object.Object["spec"] = map[string]any{"size": tenant}
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: object})
		}
		review.Request = nil
		if err := json.NewEncoder(w).Encode(review); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return authority.CertPEM, &pods{servers: map[string]string{hookAddress + ":8443": server.Listener.Addr().String()}}
}

// TestConversion: equal definitions of two tenants, each converted by the
// webhook of its tenant through its network.
func TestConversion(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	for _, name := range []string{"red", "blue"} {
		ca, network := newConverter(t, name)
		tenant, _ := addWithNetwork(t, c, name, network)
		define(t, tenant, convertedDefinition(&apiextensionsv1.WebhookClientConfig{
			CABundle: ca, Service: &apiextensionsv1.ServiceReference{Namespace: "team", Name: "hook"},
		}))
		createGadget(t, tenant)
		found, err := convertedGadget(t, tenant)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Object["spec"]).To(Equal(map[string]any{"size": name}))
		g.Expect(network.purposes).To(And(Not(BeEmpty()), HaveEach(egress.Webhooks)))
	}
}

// convertedDefinition is a definition of two versions, between which a webhook
// converts.
func convertedDefinition(webhook *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceDefinition {
	definition := gadgetDefinition("example.org", "v1beta1", "v1")
	for i := range definition.Spec.Versions {
		definition.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	}
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"}, ClientConfig: webhook},
	}
	return definition
}

// convertedGadget reads the gadget of createGadget in the version that is not
// stored.
func convertedGadget(t *testing.T, tenant *chain.Tenant) (*unstructured.Unstructured, error) {
	t.Helper()
	client, err := dynamic.NewForConfig(tenant.Config())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	beta := schema.GroupVersionResource{Group: "example.org", Version: "v1beta1", Resource: "gadgets"}
	return client.Resource(beta).Namespace("team").Get(t.Context(), "x", metav1.GetOptions{})
}

func createGadget(t *testing.T, tenant *chain.Tenant) {
	t.Helper()
	g := NewWithT(t)
	client, err := dynamic.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	object := widget("x", map[string]any{"size": "as created"})
	object.SetAPIVersion("example.org/v1")
	object.SetKind("Gadget")
	stored := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"}
	_, err = client.Resource(stored).Namespace("team").Create(t.Context(), object, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}
