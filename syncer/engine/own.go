package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/syncer/wire"
)

// Own is an object of a kind that is in each of a tenant's namespaces of the super cluster, before anything of the tenant's is. No tenant
// has declared it, so it is nobody's copy: a tenant's object of the name stays in the tenant, and validators are not asked about it.
type Own[T client.Object] struct {
	// Name is the object's in each namespace.
	Name string
	// Desired is the object, whose metadata the engine fills in; nil if the tenant's namespaces are to have none.
	Desired func(v View) T
}

// own is an Own with its type erased.
type own struct {
	name    string
	desired func(View) client.Object
}

func (o Own[T]) erase() own {
	return own{name: o.Name, desired: func(v View) client.Object {
		var none T
		if obj := o.Desired(v); client.Object(obj) != client.Object(none) {
			return obj
		}
		return nil
	}}
}

// isOwn says whether an object of the super cluster is the syncer's own.
func (k *kind) isOwn(obj client.Object) bool {
	return !isCopy(obj) && slices.ContainsFunc(k.down.own, func(o own) bool { return o.name == obj.GetName() })
}

// isCopy says whether an object of the super cluster is that of some tenant.
func isCopy(obj client.Object) bool { return translate.OriginOf(obj).Cluster != "" }

// ownObject is an object of the syncer's own as it is and as it should be; nil where there is none, or should be none.
type ownObject struct {
	kind           *kind
	super, desired client.Object
}

// differs says whether something is to be done about it.
func (o ownObject) differs() bool {
	if o.super == nil || o.desired == nil {
		return o.super != o.desired
	}
	return stand(o.super) == present && (isCopy(o.super) || !wire.Equal(mergedSuper(o.kind, o.super, o.desired), o.super))
}

// withOwn are the kinds of which the syncer has objects of its own, whether the tenant's apiserver serves them or not.
func (e *Engine) withOwn() iter.Seq2[*kind, own] {
	return func(yield func(*kind, own) bool) {
		for _, k := range e.builtin {
			if k.down == nil {
				continue
			}
			for _, o := range k.down.own {
				if !yield(k, o) {
					return
				}
			}
		}
	}
}

// ensureOwn makes sure that a namespace of the tenant has the syncer's own objects, and does not look into those that it has.
func (s *session) ensureOwn(ctx context.Context, namespace string) error {
	for k, own := range s.withOwn() {
		super, err := s.superObject(ctx, k, s.ownKey(own, namespace))
		if err != nil {
			return err
		}
		if stand(super) == present && !isCopy(super) {
			continue
		}
		if err := s.syncOwn(ctx, k, own, namespace); err != nil {
			return err
		}
	}
	return nil
}

// furnish brings the syncer's own objects in the copy of a namespace to what they should be.
func (s *session) furnish(ctx context.Context, k *kind, o objects) error {
	if k.name != namespaceKind {
		return nil
	}
	for k, own := range s.withOwn() {
		if err := s.syncOwn(ctx, k, own, o.key.Name); err != nil {
			return err
		}
	}
	return nil
}

// unfurnished says whether that would write anything.
func (s *session) unfurnished(ctx context.Context, k *kind, o objects) (bool, error) {
	if k.name != namespaceKind {
		return false, nil
	}
	for k, own := range s.withOwn() {
		o, err := s.readOwn(ctx, k, own, o.key.Name)
		if err != nil || o.differs() {
			return true, err
		}
	}
	return false, nil
}

// ownKey is where an object of the syncer's own is for a namespace.
func (s *session) ownKey(o own, namespace string) client.ObjectKey {
	return s.identity().SuperKey(client.ObjectKey{Namespace: namespace, Name: o.name})
}

func (s *session) readOwn(ctx context.Context, k *kind, own own, namespace string) (ownObject, error) {
	t, key := s.identity(), s.ownKey(own, namespace)
	o := ownObject{kind: k, desired: own.desired(s.view(ctx, namespace))}
	if o.desired != nil {
		o.desired.SetNamespace(key.Namespace)
		o.desired.SetName(key.Name)
		o.desired.SetLabels(map[string]string{names.VCName: t.Name, names.VCNamespace: t.Namespace})
	}
	var err error
	o.super, err = s.superObject(ctx, k, key)
	return o, err
}

// syncOwn brings one of the syncer's own objects to what it should be.
func (s *session) syncOwn(ctx context.Context, k *kind, own own, namespace string) error {
	defer s.locks.lock("own "+k.name, client.ObjectKey{Namespace: namespace, Name: own.name})()
	o, err := s.readOwn(ctx, k, own, namespace)
	switch {
	case err != nil || !o.differs():
		return err
	case o.super == nil:
		return s.createOwn(ctx, o)
	case o.desired == nil:
		return s.guard.remove(ctx, o.kind, o.super, nil)
	case isCopy(o.super):
		// It had the name before the name was ours. Its event leads here again.
		return errors.Join(fmt.Errorf("%s %s is in the way and is removed first", k.name, own.name), s.guard.remove(ctx, o.kind, o.super, nil))
	}
	return s.changeOwn(ctx, o)
}

// createOwn makes one of the syncer's own objects. One that the cache does not show, since it lost its labels, is put right.
func (s *session) createOwn(ctx context.Context, o ownObject) error {
	err := s.guard.createOwn(ctx, o.kind, o.desired)
	switch {
	case err == nil:
		s.superRecent.put(o.kind.name, o.desired)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return refused(err)
	}
	if o.super, err = s.liveCopy(ctx, o.kind, client.ObjectKeyFromObject(o.desired)); err != nil || o.super == nil {
		return err
	}
	return s.changeOwn(ctx, o)
}

func (s *session) changeOwn(ctx context.Context, o ownObject) error {
	merged := mergedSuper(o.kind, o.super, o.desired)
	if err := s.guard.patchOwn(ctx, o.kind, merged, o.super); err != nil {
		return refused(err)
	}
	s.superRecent.put(o.kind.name, merged)
	return nil
}

// reviewOwn has the namespace looked at in which something of the syncer's own has changed, and says whether it is that. The tenant
// takes note of it first.
func (e *Engine) reviewOwn(k *kind, obj client.Object, note func(*session)) bool {
	if !k.isOwn(obj) {
		return false
	}
	if !e.known() {
		return true // each namespace is looked at when its tenant begins
	}
	spaces := e.builtin[namespaceKind]
	ns, err := spaces.cache.get(context.Background(), spaces, client.ObjectKey{Name: obj.GetNamespace()})
	if err != nil || ns == nil {
		return true
	}
	origin := translate.OriginOf(ns)
	if s := e.session(multicluster.ClusterName(origin.Cluster)); s != nil {
		note(s)
		s.enqueue(s.request(spaces, client.ObjectKey{Name: origin.Namespace}), priorityNormal)
	}
	return true
}
