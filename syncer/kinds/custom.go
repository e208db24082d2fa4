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
