package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// CustomResource describes a custom resource.
type CustomResource struct {
	// GVK is the kind in the version that is synced.
	GVK schema.GroupVersionKind
	// Direction is the direction of syncing.
	Direction tenancyv1alpha1.SyncDirection
	// Namespaced is set if its objects are namespaced, Status if their status
	// is a subresource.
	Namespaced, Status bool
}

// StandingResource is a custom resource of which the syncer reads all objects in
// the super cluster, once that serves it and the syncer may read it, whether
// a tenant syncs it or not.
type StandingResource struct {
	// Definition is the name of its definition.
	Definition string
	// Direction is the direction in which tenants may sync it.
	Direction tenancyv1alpha1.SyncDirection
}
