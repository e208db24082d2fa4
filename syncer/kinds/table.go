package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Table returns the kinds of flows in their order, with the names that they
// have in the scheme. All that is the same for every kind is derived from it:
// scopes, roles, what the API accepts, what plugins count, and the tables of
// the documents.
func Table(flows []Flow, scheme *runtime.Scheme) ([]*Kind, error) {
	table := make([]*Kind, 0, len(flows))
	names := sets.New[string]()
	for _, flow := range flows {
		k := flow.Erase()
		if names.Has(k.Name) {
			return nil, fmt.Errorf("two kinds have the name %s", k.Name)
		}
		names.Insert(k.Name)
		var err error
		if k.GVK, err = apiutil.GVKForObject(k.Object, scheme); err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", k.Object, err)
		}
		k.Resource = ResourceName(k.GVK, false)
		table = append(table, k)
	}
	return table, nil
}

// GroupResource returns the resource of the kind with its group.
func (k *Kind) GroupResource() schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(k.GVK)
	return plural.GroupResource()
}

// Modes returns the modes that spec.sync.kinds accepts for the kind, the
// default first; none for a kind that is always synced.
func (k *Kind) Modes() []tenancyv1alpha1.SyncMode {
	var modes []tenancyv1alpha1.SyncMode
	switch {
	case k.Down != nil && k.Down.OnDemand:
		modes = append(modes, tenancyv1alpha1.SyncReferenced, tenancyv1alpha1.SyncAll)
	case k.Optional:
		modes = append(modes, tenancyv1alpha1.SyncAll)
	}
	if k.Optional {
		modes = append(modes, tenancyv1alpha1.SyncOff)
	}
	return modes
}
