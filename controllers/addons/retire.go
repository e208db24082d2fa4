package addons

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// retire deletes the objects of an addon. The last object, which is created
// last and deleted last, tells if there are any.
func retire(ctx context.Context, tenant dynamic.Interface, addon filled) error {
	last := addon.objects[len(addon.objects)-1]
	if made, err := madeHere(ctx, tenant, last); err != nil || made == nil {
		return err
	}
	for _, obj := range addon.objects {
		if err := removeMade(ctx, tenant, obj); err != nil {
			return fmt.Errorf("remove %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// removeMade removes the object of this kind and name if it was made here.
func removeMade(ctx context.Context, tenant dynamic.Interface, obj *unstructured.Unstructured) error {
	made, err := madeHere(ctx, tenant, obj)
	if err != nil || made == nil {
		return err
	}
	this := metav1.NewUIDPreconditions(string(made.GetUID()))
	return client.IgnoreNotFound(resourceOf(tenant, obj).Delete(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: this}))
}

// madeHere is the object of this kind and name that was made here; nil if there
// is none, or if it is the tenant's own.
func madeHere(ctx context.Context, tenant dynamic.Interface, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	have, err := resourceOf(tenant, obj).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if have.GetAnnotations()[names.Applied] == "" {
		return nil, nil
	}
	return have, nil
}
