package syncdown

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// networkTable has the networks of a tenant.
type networkTable interface {
	// Name returns the name of the network that an object names; of the default
	// one for an object that names none.
	Name(named string) string
	// Use registers that a copy is created in a network, until release is called.
	// It returns an error if the network cannot be used.
	Use(name string) (release func(), err error)
	// Known returns an error while it is not known which networks there are.
	Known() error
	// Record returns what the copies in a network that prepares them are annotated
	// with; empty for a network that does not.
	Record(name string) string
}

// networkOf returns the network of the copy of an object. A mirrored object
// stays in the network in which its copy was created, whatever its label is.
func networkOf(t networkTable, k *kinds.Kind, o session.Objects) string {
	if k.Down.Mirror != nil && o.Super != nil && session.IsCopyOf(translate.OriginOf(o.Super), o.Tenant) {
		if network := o.Super.GetLabels()[networkv1.Label]; network != "" {
			return network
		}
	}
	return t.Name(k.Down.Network(o.Tenant))
}

// joinNetwork puts a copy into its network.
func joinNetwork(t networkTable, k *kinds.Kind, o session.Objects, desired client.Object) error {
	if k.Down.Network == nil {
		return nil
	}
	network := networkOf(t, k, o)
	labels := desired.GetLabels()
	labels[networkv1.Label] = network
	desired.SetLabels(labels)
	return k.Down.InNetwork(o.Tenant, desired, network)
}

// attachNetwork prepares a new copy for a network that prepares copies.
func attachNetwork(t networkTable, k *kinds.Kind, o session.Objects, desired client.Object) error {
	if k.Down.Network == nil || k.Down.Attach == nil {
		return nil
	}
	record := t.Record(networkOf(t, k, o))
	if record == "" {
		return nil
	}
	notes := desired.GetAnnotations()
	notes[names.NetworkRecord] = record
	desired.SetAnnotations(notes)
	return k.Down.Attach(o.Tenant, desired)
}

// useNetwork registers that a copy is created in its network, until release is
// called.
func useNetwork(t networkTable, k *kinds.Kind, o session.Objects) (release func(), err error) {
	if k.Down.Network == nil || k.Down.AnyNetwork {
		return func() {}, nil
	}
	return t.Use(networkOf(t, k, o))
}

// knowNetwork returns an error while it is not known what the copy of an object
// depends on.
func knowNetwork(t networkTable, k *kinds.Kind) error {
	if !k.Down.AnyNetwork {
		return nil
	}
	return t.Known()
}

// ensureNetwork ensures that the namespace of an object has what keeps its
// network apart, before a copy that runs there is created.
func ensureNetwork(ctx context.Context, t networkTable, own networkEnsurer, k *kinds.Kind, o session.Objects) error {
	if k.Down.Network == nil || k.Down.Mirror == nil {
		return nil
	}
	return own.EnsureNetwork(ctx, o.Key.Namespace, networkOf(t, k, o))
}
