package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Reference names an object that another one needs.
type Reference struct {
	// Kind and Name say which. The kind of a custom resource has its group, such as VolumeSnapshot.snapshot.storage.k8s.io.
	Kind, Name string
	// Namespace is the tenant's; empty is that of the object that refers.
	Namespace string
	// Required: without it, the super cluster would refuse the object that refers to it.
	Required bool
}

// keyFor returns the tenant's key of what an object in a namespace refers to.
func (r Reference) keyFor(namespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(r.Namespace, namespace), Name: r.Name}
}

// Errors by which a copy is rejected for what it refers to. They do not say whose the object is.
var (
	errForeignReference  = errors.New("the name belongs to an object that is not this cluster's; use another name")
	errReservedName      = errors.New("the name is reserved; use another name")
	errUnsyncedReference = errors.New("objects of this kind are not synced, so there is none to refer to")
)

// rejected returns the rejection of an object that has this reference.
func (r Reference) rejected(why error) error {
	return refusal{fmt.Errorf("refers to %s %q: %w", r.Kind, r.Name, why)}
}

// resolve ensures the copies of all that an object refers to, and reports whether those that are required exist. A copy may name
// only copies of its own tenant: any other object of such a name in the super cluster is the platform's, and the tenant may not
// read it.
func (s *session) resolve(ctx context.Context, k *kind, obj client.Object) (ready bool, err error) {
	ready = true
	for _, ref := range references(k, obj) {
		there, err := s.resolveReference(ctx, k, ref, ref.keyFor(obj.GetNamespace()))
		if err != nil {
			return false, err
		}
		ready = ready && (there || !ref.Required)
	}
	return ready, nil
}

// resolveReference ensures the copy of one object that another of kind k refers to, and reports whether it exists.
func (s *session) resolveReference(ctx context.Context, k *kind, ref Reference, key client.ObjectKey) (bool, error) {
	to := s.kind(ref.Kind)
	if to == nil {
		to = s.builtin[ref.Kind]
	}
	switch {
	case to == nil && strings.Contains(ref.Kind, "."):
		return false, ref.rejected(errUnsyncedReference)
	case to == nil: // which the super cluster does not serve
		return false, nil
	case to.down == nil: // which the super cluster shows to the tenant
		return true, nil
	case to.down.reserved(ref.Name):
		return false, ref.rejected(errReservedName)
	}
	there, err := s.ensureReferred(ctx, k, to, key)
	switch {
	case errors.Is(err, errForeign):
		return false, ref.rejected(errForeignReference)
	case err != nil && ref.Required:
		return false, err
	case err != nil:
		// It is reconciled separately, with its own backoff and its own event.
		s.enqueue(s.request(to, key), priorityNormal)
	}
	if there || ref.Required {
		return there, nil
	}
	return false, s.checkFree(ctx, to, ref, key)
}

// ensureReferred ensures the copy of what an object refers to. What is of the object's own kind is only looked up: objects that refer
// to each other would wait for each other's locks.
func (s *session) ensureReferred(ctx context.Context, k, to *kind, key client.ObjectKey) (bool, error) {
	if to != k {
		return s.ensure(ctx, to.name, key)
	}
	super, err := s.superObject(ctx, to, to.down.superKey(s.identity(), key))
	return super != nil && s.isOurs(super), err
}

// checkFree rejects a reference to a name that an object in the super cluster has which is not the tenant's copy. It reads live:
// the cache holds only copies.
func (s *session) checkFree(ctx context.Context, to *kind, ref Reference, key client.ObjectKey) error {
	found, err := s.liveCopy(ctx, to, to.down.superKey(s.identity(), key))
	if err != nil {
		return fmt.Errorf("look for %s %s in the super cluster: %w", ref.Kind, ref.Name, err)
	}
	if found != nil && !s.isOurs(found) {
		return ref.rejected(errForeignReference)
	}
	return nil
}

// isOurs reports whether an object of the super cluster is a copy of this tenant's.
func (s *session) isOurs(super client.Object) bool {
	return translate.OriginOf(super).Cluster == s.lane()
}
