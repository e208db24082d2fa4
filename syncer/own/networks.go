package own

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// NetworkSpecs are the networks of a tenant.
type NetworkSpecs interface {
	// Known reports whether the networks have been read.
	Known() bool
	// Spec returns a network, and false if it does not exist.
	Spec(name string) (kinds.Network, bool)
}

// networks are the networks of a tenant, and the kinds that they concern.
type networks struct {
	specs NetworkSpecs // nil without networks
	// declared returns the own objects of each kind, and members the kinds whose
	// copies belong to networks.
	declared func() iter.Seq2[*kinds.Kind, *kinds.OwnInNetworks[client.Object]]
	members  func() iter.Seq[*kinds.Kind]
	// namespaces calls f with the name of each namespace of the tenant that has a
	// copy.
	namespaces func(ctx context.Context, f func(name string)) error
}

// networksOf returns the networks of a session.
func networksOf(s *session.Session, specs NetworkSpecs) networks {
	return networks{
		specs: specs,
		declared: func() iter.Seq2[*kinds.Kind, *kinds.OwnInNetworks[client.Object]] {
			return func(yield func(*kinds.Kind, *kinds.OwnInNetworks[client.Object]) bool) {
				for _, k := range s.Builtin {
					if k.Down != nil && k.Down.OwnInNetworks != nil && !yield(k, k.Down.OwnInNetworks) {
						return
					}
				}
			}
		},
		members: func() iter.Seq[*kinds.Kind] {
			return func(yield func(*kinds.Kind) bool) {
				for _, k := range s.Builtin {
					if k.Down != nil && k.Down.Network != nil && k.Down.Mirror != nil && !yield(k) {
						return
					}
				}
			}
		},
		namespaces: func(ctx context.Context, f func(string)) error {
			return s.EachSuperKey(ctx, s.Builtin[session.NamespaceKind], func(key client.ObjectKey) { f(key.Name) })
		},
	}
}

// isOfNetworks reports whether an own object of a kind for networks has a name.
func isOfNetworks(k *kinds.Kind, name string) bool {
	in := k.Down.OwnInNetworks
	if in == nil {
		return false
	}
	_, is := in.NetworkOf(name)
	return is || name == in.Closed.Name
}

// EnsureNetwork makes sure that a namespace of the tenant has the objects of a
// network, before the first pod of the network is created there.
func (s *Syncer) EnsureNetwork(ctx context.Context, namespace, network string) error {
	n, exists := s.networks.specs.Spec(network)
	if !exists {
		return &pending.BlockedError{On: networkv1.Kind + " " + network}
	}
	for k, in := range s.networks.declared() {
		if err := s.ensure(ctx, k, in.Of(n), namespace); err != nil {
			return err
		}
		closed, err := s.reader.SuperObject(ctx, k, s.key(in.Closed, namespace))
		if err != nil {
			return err
		}
		if closed == nil || session.IsCopy(closed) { // pods of other networks may be older than networks are
			return s.syncNetworks(ctx, namespace)
		}
	}
	return nil
}

// Release deletes the objects of a network in all namespaces of the tenant. No
// pod is in the network, and none comes.
func (s *Syncer) Release(ctx context.Context, network string) error {
	namespaces := sets.New[string]()
	if err := s.networks.namespaces(ctx, func(name string) { namespaces.Insert(name) }); err != nil {
		return err
	}
	for k, in := range s.networks.declared() {
		for namespace := range namespaces {
			if err := s.sync(ctx, k, gone(in.Of(kinds.Network{Name: network})), namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone returns an own object that should not exist.
func gone(o kinds.Own[client.Object]) kinds.Own[client.Object] {
	return kinds.Own[client.Object]{Name: o.Name, Desired: func(kinds.View) client.Object { return nil }}
}

// syncNetworks syncs the objects for networks in a namespace.
func (s *Syncer) syncNetworks(ctx context.Context, namespace string) error {
	return s.eachForNetworks(ctx, namespace, func(k *kinds.Kind, own kinds.Own[client.Object]) (bool, error) {
		err := s.sync(ctx, k, own, namespace)
		return err == nil, err
	})
}

// networksDiffer reports whether syncNetworks would write anything.
func (s *Syncer) networksDiffer(ctx context.Context, namespace string) (differ bool, err error) {
	err = s.eachForNetworks(ctx, namespace, func(k *kinds.Kind, own kinds.Own[client.Object]) (bool, error) {
		o, err := s.read(ctx, k, own, namespace)
		differ = err == nil && o.differs()
		return !differ, err
	})
	return differ, err
}

// eachForNetworks calls f with each object for networks that a namespace should
// have, or should not have any more, until f returns false. The order is that of
// writes: existing pods are not cut off before their network is open.
func (s *Syncer) eachForNetworks(
	ctx context.Context, namespace string, f func(*kinds.Kind, kinds.Own[client.Object]) (bool, error),
) error {
	if s.networks.specs != nil && !s.networks.specs.Known() {
		return nil // they are synced when the networks are known
	}
	for k, in := range s.networks.declared() {
		objects, err := s.forNetworks(ctx, k, in, s.identity().SuperNamespace(namespace))
		if err != nil {
			return err
		}
		for _, own := range objects {
			if more, err := f(k, own); !more || err != nil {
				return err
			}
		}
	}
	return nil
}

// forNetworks returns the objects of a kind for networks that a namespace of the
// super cluster should have, or should not have any more.
func (s *Syncer) forNetworks(
	ctx context.Context, k *kinds.Kind, in *kinds.OwnInNetworks[client.Object], superNamespace string,
) ([]kinds.Own[client.Object], error) {
	existing, err := s.existing(ctx, k, in, superNamespace)
	if err != nil {
		return nil, err
	}
	if s.networks.specs == nil {
		objects := []kinds.Own[client.Object]{gone(in.Closed)}
		for name := range existing {
			objects = append(objects, gone(in.Of(kinds.Network{Name: name})))
		}
		return objects, nil
	}
	used, err := s.used(ctx, superNamespace)
	if err != nil {
		return nil, err
	}
	var objects []kinds.Own[client.Object]
	for name := range existing.Union(used) {
		n, exists := s.networks.specs.Spec(name)
		switch {
		case exists:
			objects = append(objects, in.Of(n))
		case !used.Has(name):
			objects = append(objects, gone(in.Of(kinds.Network{Name: name})))
		}
	}
	return append(objects, in.Closed), nil
}

// existing returns the networks that have an object of a kind in a namespace of
// the super cluster.
func (s *Syncer) existing(
	ctx context.Context, k *kinds.Kind, in *kinds.OwnInNetworks[client.Object], superNamespace string,
) (sets.Set[string], error) {
	found := sets.New[string]()
	err := s.reader.EachIn(ctx, k, superNamespace, func(obj client.Object) {
		if network, is := in.NetworkOf(obj.GetName()); is && !session.IsCopy(obj) {
			found.Insert(network)
		}
	})
	return found, err
}

// used returns the networks that have pods in a namespace of the super cluster.
func (s *Syncer) used(ctx context.Context, superNamespace string) (sets.Set[string], error) {
	found := sets.New[string]()
	for k := range s.networks.members() {
		err := s.reader.EachIn(ctx, k, superNamespace, func(obj client.Object) {
			if session.IsCopy(obj) && !k.Down.Mirror.Ended(obj) {
				found.Insert(obj.GetLabels()[networkv1.Label])
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
