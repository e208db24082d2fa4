package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// View gives the functions of a kind access to related objects.
type View struct {
	// Tenant is the tenant that the object belongs to, or is synced up to.
	Tenant translate.Tenant
	// Namespace is the tenant's name of the namespace of the object, or that it
	// belongs to.
	Namespace string
	// Lookup returns the tenant's object of a copy; nil if there is none, or if
	// the copy does not have this UID. An empty UID matches any. For a kind
	// whose contents are not cached, it returns the metadata.
	Lookup func(kind schema.GroupKind, superKey client.ObjectKey, uid types.UID) client.Object
	// Rivals returns the super cluster's objects, of all kinds with claims, that
	// have a claim and are not in the tenant's namespaces. It is an error if not
	// all objects are known yet.
	Rivals func(claim string) ([]client.Object, error)
	// Copy returns the tenant's copy of a kind and name in this namespace; nil
	// if there is none.
	Copy func(kind, name string) client.Object
	// Digest returns the digest of the tenant's known copies of a kind in this
	// namespace; nil for a kind without digests.
	Digest func(kind string) any
	// Offers reports whether the class of a kind and name is offered to the
	// tenant.
	Offers func(kind, name string) bool
	// Offered returns the keys in the super cluster of the objects of a standing
	// custom resource that are offered to the tenant, sorted.
	Offered func(kind string) []client.ObjectKey
	// RunsAt reports whether only a mirrored object of the tenant has an
	// address in the super cluster.
	RunsAt func(address string) bool
	// Network returns the network that an object names; one that reaches nothing
	// outside if it does not exist. Nil if tenants have no networks.
	Network func(named string) Network
}
