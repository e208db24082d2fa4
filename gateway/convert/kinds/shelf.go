package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Shelf is the type in the super cluster of shelved objects, which have no effect
// there.
var Shelf = schema.GroupVersion{Group: names.ShelvedGroup, Version: "v1"}

// How shelved objects with and without a namespace are stored.
var (
	shelf     = Stored{Group: Shelf.Group, Version: Shelf.Version}
	rootShelf = Stored{Group: Shelf.Group, Version: Shelf.Version, InRoot: true}
)

// storedRules are the rules of a kind that the super cluster has as another
// type.
func (k Kind) storedRules() Rules {
	if !k.IsStored() {
		return nil
	}
	tenant := schema.GroupVersion{Group: k.Group, Version: k.Stored.Version}.String()
	super := k.StoredAs(k.Stored.Version).String()
	rules := Rules{
		"apiVersion":             {Means: TypeVersion, Tenant: tenant, Super: super},
		"metadata.managedFields": {Means: ManagedFields, Tenant: tenant, Super: super},
		"metadata.name":          {Means: StoredName},
	}
	if k.Stored.InRoot {
		rules["metadata.namespace"] = Rule{Means: RootNamespace}
		rules["metadata.ownerReferences[*]"] = Rule{Means: RootOwner}
	}
	return rules
}
