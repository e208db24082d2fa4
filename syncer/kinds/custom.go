package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// CustomResource is what the kind of a custom resource depends on.
type CustomResource struct {
	// GVK is its kind in the version that is carried.
	GVK schema.GroupVersionKind
	// Direction is which way it flows.
	Direction tenancyv1alpha1.SyncDirection
	// Namespaced says that its objects are in namespaces, Status that their status is a subresource.
	Namespaced, Status bool
}
