// Package metricsserver measures what the pods of the super cluster use, if its
// nodes run any: by metrics-server, as any cluster does.
package metricsserver

import (
	"context"
	_ "embed"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/controllers/addons"
)

//go:embed manifests.yaml
var manifests string

// Install brings metrics-server in the super cluster to the version of this
// program. It does not wait until it runs.
func Install(ctx context.Context, super *rest.Config) error {
	objects, err := addons.Render(manifests, nil)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(super)
	if err != nil {
		return fmt.Errorf("make a client for metrics-server: %w", err)
	}
	if err := addons.Ensure(ctx, client, objects); err != nil {
		return fmt.Errorf("install metrics-server: %w", err)
	}
	return nil
}

// Remove deletes the APIService, because no namespace can be deleted while an
// aggregated API does not answer.
func Remove(ctx context.Context, super *rest.Config) error {
	client, err := dynamic.NewForConfig(super)
	if err != nil {
		return fmt.Errorf("make a client for metrics-server: %w", err)
	}
	apiServices := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	if err := apiServices.Delete(ctx, "v1beta1.metrics.k8s.io", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the API of metrics-server: %w", err)
	}
	return nil
}
