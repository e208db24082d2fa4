package local

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// EachObject calls f with each object of each resource that an apiserver
// serves.
func EachObject(ctx context.Context, server *rest.Config, f func(schema.GroupVersionResource, *unstructured.Unstructured)) error {
	server = rest.CopyConfig(server)
	server.WarningHandler = rest.NoWarnings{} // of deprecated kinds
	asks, err := discovery.NewDiscoveryClientForConfig(server)
	if err != nil {
		return err
	}
	lists, err := asks.ServerPreferredResources()
	if err != nil {
		return err
	}
	reads, err := dynamic.NewForConfig(server)
	if err != nil {
		return err
	}
	for _, of := range listable(lists) {
		all, err := reads.Resource(of).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // discovery lists ComponentStatus, which hosted control planes do not serve to tenants
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", of, err)
		}
		for i := range all.Items {
			f(of, &all.Items[i])
		}
	}
	return nil
}

// listable returns the resources that can be listed.
func listable(lists []*metav1.APIResourceList) []schema.GroupVersionResource {
	var found []schema.GroupVersionResource
	for _, list := range lists {
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				found = append(found, schema.FromAPIVersionAndKind(list.GroupVersion, "").GroupVersion().WithResource(r.Name))
			}
		}
	}
	return found
}
