package metricsserver_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/metricsserver"
)

// TestInstall installs metrics-server in a real cluster without nodes, twice,
// and removes what would be in the way of deleted namespaces.
func TestInstall(t *testing.T) {
	super := startCluster(t)
	client, err := dynamic.NewForConfig(super)
	if err != nil {
		t.Fatal(err)
	}
	deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("kube-system")
	apiServices := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	for range 2 {
		if err := metricsserver.Install(t.Context(), super); err != nil {
			t.Fatal(err)
		}
		if _, err := deployments.Get(t.Context(), "metrics-server", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := apiServices.Get(t.Context(), "v1beta1.metrics.k8s.io", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	for range 2 { // a second removal is no error
		if err := metricsserver.Remove(t.Context(), super); err != nil {
			t.Fatal(err)
		}
		if _, err := apiServices.Get(t.Context(), "v1beta1.metrics.k8s.io", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want no APIService", err)
		}
	}
	for name, config := range map[string]*rest.Config{
		"nobody's":     rest.AnonymousClientConfig(super),
		"no cluster's": {Host: "http://127.0.0.1:1"},
		"no":           {Host: "://"},
	} {
		if metricsserver.Install(t.Context(), config) == nil || metricsserver.Remove(t.Context(), config) == nil {
			t.Errorf("with %s credentials there is no error", name)
		}
	}
}

// startCluster starts a control plane that ends with the test.
func startCluster(t *testing.T) *rest.Config {
	t.Helper()
	host, err := hosted.Start(context.Background(), hosted.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	plane, err := host.Run(hosted.Spec{Name: "super"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-plane.Ready():
	case <-plane.Done():
		t.Fatal(plane.Err())
	case <-time.After(time.Minute):
		t.Fatal("the control plane is not ready")
	}
	return plane.RESTConfig()
}
