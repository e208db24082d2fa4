package addons

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Ensure applies those objects that are not as they were applied last.
func Ensure(ctx context.Context, cluster dynamic.Interface, objects []*unstructured.Unstructured) error {
	for _, obj := range objects {
		if err := ensureObject(ctx, cluster, obj); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// ensureFor applies an addon in a tenant, and says how the tenant gets rid of
// what stands in the way.
func ensureFor(ctx context.Context, tenant dynamic.Interface, addon filled) error {
	err := Ensure(ctx, tenant, addon.objects)
	if apierrors.IsInvalid(err) {
		return fmt.Errorf("the tenant has another one, which cannot become the one that is wanted; "+
			"delete that, or annotate namespace %s with %s=%s: %w", metav1.NamespaceSystem, addon.OptOut, names.Unmanaged, err)
	}
	return err
}

func ensureObject(ctx context.Context, cluster dynamic.Interface, obj *unstructured.Unstructured) error {
	objects := resourceOf(cluster, obj)
	version := versionOf(obj)
	switch have, err := objects.Get(ctx, obj.GetName(), metav1.GetOptions{}); {
	case err == nil && (have.GetAnnotations()[names.Applied] == version || isTenants(have)):
		return nil
	case client.IgnoreNotFound(err) != nil:
		return err
	}
	obj.SetAnnotations(map[string]string{names.Applied: version})
	_, err := objects.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldOwner, Force: true})
	return err
}

// resourceOf is what an object is one of, in its namespace if it has one.
func resourceOf(cluster dynamic.Interface, obj *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	if obj.GetNamespace() != "" {
		return cluster.Resource(plural).Namespace(obj.GetNamespace())
	}
	return cluster.Resource(plural)
}

// isTenants reports whether an existing object is the tenant's, to be left
// unchanged: a ConfigMap, which tenants are meant to change, and an APIService
// that was not created here, so that the tenant serves the API.
func isTenants(have *unstructured.Unstructured) bool {
	switch have.GetKind() {
	case "ConfigMap":
		return true
	case "APIService":
		return have.GetAnnotations()[names.Applied] == ""
	default:
		return false
	}
}

// versionOf tells one state of an object from another.
func versionOf(obj *unstructured.Unstructured) string {
	data, _ := obj.MarshalJSON() // of what was read from YAML, so it can
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
