package bench

import (
	"context"
	_ "embed" // the workload
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

//go:embed workload.yaml
var workload string

// podsOfWorkload is the number of pods that the controllers create.
const podsOfWorkload = 3

const poll = 50 * time.Millisecond

// resourceOf returns the resource of a kind in the workload.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
}

// use creates the workload in a control plane, waits for its pods, and closes
// the connections.
func use(ctx context.Context, config *rest.Config, hook *httptest.Server) error {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer utilnet.CloseIdleConnectionsFor(httpClient.Transport)
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(workload, "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			return fmt.Errorf("read the workload: %w", err)
		}
		if obj.GetKind() == "ValidatingWebhookConfiguration" {
			setAddress(obj, hook)
		}
		if err := create(ctx, client, obj); err != nil {
			return err
		}
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(metav1.NamespaceDefault)
	return until(ctx, poll, "the workload has its pods", func() (bool, error) {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "bench=workload"})
		return err == nil && len(list.Items) == podsOfWorkload, err
	})
}

// create retries until the object's resource is served.
func create(ctx context.Context, client dynamic.Interface, obj *unstructured.Unstructured) error {
	var in dynamic.ResourceInterface = client.Resource(resourceOf(obj.GroupVersionKind()))
	if obj.GetNamespace() != "" {
		in = client.Resource(resourceOf(obj.GroupVersionKind())).Namespace(obj.GetNamespace())
	}
	return until(ctx, poll, obj.GetKind()+" "+obj.GetName()+" is created", func() (bool, error) {
		_, err := in.Create(ctx, obj, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), err
	})
}

// setAddress sets the address of the webhook.
func setAddress(configuration *unstructured.Unstructured, hook *httptest.Server) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, webhook := range webhooks {
		webhook.(map[string]any)["clientConfig"] = map[string]any{
			"url": hook.URL, "caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}
	configuration.Object["webhooks"] = webhooks
}

// newWebhook returns a server that admits everything.
func newWebhook() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the apiserver reports what it did not receive
	}))
}
