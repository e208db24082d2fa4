package converted

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fenced returns a client that acts as the service account of a tenant. The error
// is NotFound, and the client nil, if the account is gone with the root namespace.
type Fenced func(ctx context.Context, clusterKey string) (metadata.Interface, error)

// fencedBy returns clients with tokens that a client of vc-manager requests.
func fencedBy(super *rest.Config, c client.Client) Fenced {
	return func(ctx context.Context, clusterKey string) (metadata.Interface, error) {
		issued, err := requestToken(ctx, c, clusterKey, authenticationv1.TokenRequestSpec{})
		if err != nil {
			return nil, err
		}
		config := rest.AnonymousClientConfig(super)
		config.BearerToken = issued.Token
		return metadata.NewForConfig(config)
	}
}

// finalizing removes the finalizers of a tenant that is deleted from its objects:
// nothing would remove the tenant's own, and the tenant could not be deleted. It
// acts as the tenant's service account, which reaches what is the tenant's.
type finalizing struct {
	fenced Fenced
	mapper meta.RESTMapper
	now    func() time.Time
}

// patience is how long controllers of the super cluster have to finish their own
// work on an object that is deleted.
const patience = 5 * time.Minute

// isOfKubernetes reports whether a finalizer is perhaps one of a controller of
// the super cluster. A tenant can write these, too.
func isOfKubernetes(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") ||
		domain == metav1.FinalizerDeleteDependents || domain == metav1.FinalizerOrphanDependents
}

// kept returns the finalizers that an object keeps that is deleted.
func kept(object metav1.Object, now time.Time) []string {
	if now.Sub(object.GetDeletionTimestamp().Time) > patience {
		return []string{}
	}
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return !isOfKubernetes(f) })
}

// only returns the values that are equal to one.
func only[T comparable](values []T, keep T) []T {
	return slices.DeleteFunc(slices.Clone(values), func(value T) bool { return value != keep })
}

// remove removes the finalizers from the objects of resources in a namespace,
// or without one, that are deleted, as the tenant's service account. It returns
// how many objects are left: none if the account is gone.
func (f *finalizing) remove(
	ctx context.Context, as metadata.Interface, namespace string, resources ...schema.GroupResource,
) (left int, err error) {
	if as == nil {
		return 0, nil
	}
	for _, resource := range resources {
		found, err := f.removeOf(ctx, as, namespace, resource)
		if left += found; err != nil {
			return left, fmt.Errorf("remove finalizers of %s in namespace %q: %w", resource, namespace, err)
		}
	}
	return left, nil
}

// pageSize is how many objects are read at once.
const pageSize = 500

func (f *finalizing) removeOf(
	ctx context.Context, as metadata.Interface, namespace string, resource schema.GroupResource,
) (left int, err error) {
	version, err := f.mapper.ResourceFor(resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return 0, nil // its CRD is gone
	}
	if err != nil {
		return 0, err
	}
	objects, options := as.Resource(version).Namespace(namespace), metav1.ListOptions{Limit: pageSize}
	for {
		page, err := objects.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return left, nil
		}
		if err != nil {
			return left, err
		}
		left += len(page.Items)
		for i := range page.Items {
			if err := f.removeFrom(ctx, objects, &page.Items[i]); err != nil {
				return left, err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return left, nil
		}
	}
}

func (f *finalizing) removeFrom(ctx context.Context, objects metadata.ResourceInterface, object *metav1.PartialObjectMetadata) error {
	if object.DeletionTimestamp.IsZero() || len(object.Finalizers) == 0 {
		return nil
	}
	keep := kept(object, f.now())
	if len(keep) == len(object.Finalizers) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": object.ResourceVersion, "finalizers": keep}})
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: string(fieldOwner)})
	return client.IgnoreNotFound(err)
}
