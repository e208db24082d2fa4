package virtualcluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/secrets"
)

// ensurePublished brings an object in the root namespace to what is wanted. It
// reads it into existing; holds reports whether its data are right.
func (r *Reconciler) ensurePublished(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, existing client.Object, want runtime.ApplyConfiguration, holdsData func() bool,
) error {
	key := client.ObjectKeyFromObject(existing)
	err := r.Client.Get(ctx, key, existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	if err == nil && isPublishedFor(existing, vc) && holdsData() {
		return nil
	}
	// Applied, not created: the root namespace is ours, so that is an object of
	// this name that lost its labels.
	if err := r.Client.Apply(ctx, want, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write %s: %w", key, secrets.WithoutData(err))
	}
	return nil
}

// isPublishedFor reports whether an object leads to the VirtualCluster and has its UID.
func isPublishedFor(obj client.Object, vc *tenancyv1alpha1.VirtualCluster) bool {
	return holds(obj.GetLabels(), names.OwnerLabels(vc)) && holds(obj.GetAnnotations(), names.OwnerAnnotations(vc))
}
