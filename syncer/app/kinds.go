package app

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// kinds returns the kinds that are synced, those of the program last, and the
// table of them.
func (o *Options) kinds(scheme *runtime.Scheme) ([]kinds.Flow, []*kinds.Kind, error) {
	agent, err := o.agent()
	if err != nil {
		return nil, nil, err
	}
	outside, err := o.outside()
	if err != nil {
		return nil, nil, err
	}
	flows := slices.Concat(resources.All(agent, outside.Pods), o.Kinds)
	if o.Networks {
		flows = resources.ForNetworks(flows, outside)
	}
	if o.SharedDNS { // last, since it allows what networks do not
		flows = resources.ForSharedDNS(flows)
	}
	table, err := kinds.Table(flows, scheme)
	return flows, table, err
}

// Table returns the table of the kinds that are synced without extensions.
func Table() ([]*kinds.Kind, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return kinds.Table(resources.All(resources.Agent{}, nil), scheme)
}

// clusterScoped returns the kinds without namespaces.
func clusterScoped(table []*kinds.Kind) []schema.GroupKind {
	var scoped []schema.GroupKind
	for _, k := range table {
		if k.ClusterScoped {
			scoped = append(scoped, k.GVK.GroupKind())
		}
	}
	return scoped
}

// validated returns the kinds that tenants declare, as plugins see them.
func validated(table []*kinds.Kind) []plugins.Kind {
	var declared []plugins.Kind
	for _, k := range table {
		if k.Down != nil {
			declared = append(declared, plugins.Kind{GroupVersionKind: k.GVK, Resource: k.GroupResource(), Object: k.Watched()})
		}
	}
	return declared
}
