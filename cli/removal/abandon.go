package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// abandoned returns the kinds of objects of tenants that have finalizers of the
// components, with what selects them.
func abandoned() map[schema.GroupVersionKind][]client.ListOption {
	return map[schema.GroupVersionKind][]client.ListOption{
		tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"):     nil,
		tenancyv1alpha1.GroupVersion.WithKind("HostedControlPlane"): nil,
		corev1.SchemeGroupVersion.WithKind("Secret"):                {byName(tenancyv1alpha1.HostedControlPlaneKeys)},
	}
}

// abandon removes the finalizers of components that do not run any more.
func (r *Removal) abandon(ctx context.Context) error {
	for kind, options := range abandoned() {
		found, err := r.list(ctx, kind, options...)
		if err != nil {
			return err
		}
		for _, object := range found {
			if err := r.removeFinalizers(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeFinalizers removes the finalizers of components from an object; those of others
// stay.
func (r *Removal) removeFinalizers(ctx context.Context, object *unstructured.Unstructured) error {
	others := slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, names.Domain+"/") })
	if r.DryRun || len(others) == len(object.GetFinalizers()) {
		return nil
	}
	before := object.DeepCopy()
	object.SetFinalizers(others)
	err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizers of %s: %w", describe(object), err)
	}
	return nil
}
