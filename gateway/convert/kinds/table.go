package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// table has all kinds by group and resource.
var table = newTable()

// byKind indexes all kinds by their types, and byStored those that the super cluster
// stores as other types by these.
var (
	byKind   = byType(func(k Kind) schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} })
	byStored = byType(func(k Kind) schema.GroupVersionKind { return k.StoredAs("").WithKind(k.Kind) })
)

func byType[T comparable](of func(Kind) T) map[T]Kind {
	kinds := make(map[T]Kind, len(table))
	for _, kind := range table {
		kinds[of(kind)] = kind
	}
	return kinds
}

// nativeGroups are the API groups in the table.
var nativeGroups = newNativeGroups()

func newNativeGroups() sets.Set[string] {
	groups := sets.Set[string]{}
	for _, kind := range table {
		groups.Insert(kind.Group)
	}
	return groups
}

func newTable() map[schema.GroupResource]Kind {
	kinds := all()
	table := make(map[schema.GroupResource]Kind, len(kinds))
	for _, kind := range kinds {
		table[kind.GroupResource()] = kind
	}
	return table
}

// all returns the kinds with their trees of rules.
func all() []Kind {
	kinds := slices.Concat(core(), workloads(), networking(), classes(), definitions(), apiServices(), signing(), volumes(), rbac(),
		admission(), reviews(), unservedKinds())
	for i := range kinds {
		kinds[i].fields, kinds[i].others = tree(kinds[i].allRules()), map[string]*Field{}
		for name, subresource := range kinds[i].Subresources {
			if subresource.Form == OtherDocument {
				kinds[i].others[name] = tree(join(common, subresource.Rules))
			}
		}
	}
	return kinds
}
