package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// View is what the functions of a kind may look at beside the object.
type View struct {
	// Tenant is whose object it is, or who is going to see it.
	Tenant translate.Tenant
	// Namespace is the tenant's name of the namespace that the object is in, or belongs to.
	Namespace string
	// Lookup finds the tenant's object behind a super object of a kind that flows down; nil if there is none, or if the super
	// object is not the one with this UID. An empty UID is any. Of a kind whose contents no cache holds, it finds the metadata.
	Lookup func(kind schema.GroupKind, superKey client.ObjectKey, uid types.UID) client.Object
	// Rivals returns the super cluster's objects of a kind that have a claim and are outside of the tenant's namespaces.
	Rivals func(kind, claim string) []client.Object
	// Copy returns the tenant's copy of a kind and name in the super cluster's namespace of this one; nil if there is none.
	Copy func(kind, name string) client.Object
	// Digest is that of the tenant's copies of a kind in the super cluster's namespace of this one, as far as is known; nil for a
	// kind without.
	Digest func(kind string) any
	// Offers says whether the super cluster shows the tenant the class of this kind and name.
	Offers func(kind, name string) bool
	// RunsAt reports whether a mirrored object of the tenant has an address to itself in the super cluster.
	RunsAt func(address string) bool
}
