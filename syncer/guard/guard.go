// Package guard writes to the super cluster on behalf of one tenant, and
// rejects every write that would affect another tenant.
package guard

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ErrForeign is returned for a write that the guard rejects. It does not name
// anything of the super cluster, since tenants read it.
var ErrForeign = errors.New("the name of this object's copy in the super cluster belongs to another owner; use another name")

// ErrNoNamespace is returned for a write to a namespace that does not exist.
var ErrNoNamespace = errors.New("the namespace does not exist in the super cluster")

// fieldOwner is the field manager of applied objects.
const fieldOwner = client.FieldOwner("vc-syncer")

// statusSubresource is the subresource that validators are not called for.
const statusSubresource = "status"

// ErrKind is returned for a write of an object that is not of the kind that it
// is synced as.
var ErrKind = errors.New("the object is not of the kind that it is synced as, or cannot have its name")

// Guard writes the objects of a tenant to the super cluster; there is no other
// way. It rejects every write of an object of another kind than the one being
// reconciled, of a cluster-scoped object other than a namespace, and of an
// object in a namespace that does not have the UID of the tenant's
// VirtualCluster.
type Guard struct {
	UID    types.UID
	Client client.Client
	// Namespace returns a namespace of the super cluster from the cache, nil if
	// it does not exist.
	Namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	// Namespaced reports whether objects of the type of obj are namespaced in
	// the super cluster.
	Namespaced func(obj runtime.Object) (bool, error)
	// Rejected is called for every rejected write.
	Rejected func()
	// Validator decides about the writes of copies; nil if nothing does.
	Validator Validator
}

// Validator validates the copies of a tenant, one at a time.
type Validator interface {
	// Write executes a write if the validators allow it. was is nil for a creation.
	Write(ctx context.Context, obj, was client.Object, write func(context.Context) error) error
	// Reserve keeps other copies from being validated until release is called, if an
	// object of this type is validated at all. Writes with the returned context are
	// those that it is reserved for.
	Reserve(ctx context.Context, obj client.Object) (reserved context.Context, release func(), err error)
}

// Reserve prepares for the write of a copy, so that it need not wait for others.
// The write is one with the returned context, before release is called.
func (g *Guard) Reserve(ctx context.Context, k *kinds.Kind) (reserved context.Context, release func(), err error) {
	if g.Validator == nil {
		return ctx, func() {}, nil
	}
	return g.Validator.Reserve(ctx, k.Fresh())
}

// Create creates an object. It sets obj to the server's answer.
func (g *Guard) Create(ctx context.Context, k *kinds.Kind, obj client.Object) error {
	if ns, ok := obj.(*corev1.Namespace); ok {
		if err := g.checkKind(k, ns); err != nil {
			return err
		}
		// An existing namespace of the name is not affected: the server rejects
		// a second one.
		return g.write(ctx, ns, nil, func(ctx context.Context) error { return g.Client.Create(ctx, ns) })
	}
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return g.write(ctx, obj, nil, func(ctx context.Context) error {
		return retryByChance(k, func() error { return g.Client.Create(ctx, obj) })
	})
}

// Patch changes an object from was to obj. It sets obj to the server's answer.
func (g *Guard) Patch(ctx context.Context, k *kinds.Kind, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	return g.write(ctx, obj, was, func(ctx context.Context) error {
		return retryByChance(k, func() error { return g.Client.Patch(ctx, obj, SameObject(was, client.MergeFrom(was))) })
	})
}

// PatchSubresource changes an object from was to obj by a subresource. It sets
// obj to the server's answer.
func (g *Guard) PatchSubresource(ctx context.Context, k *kinds.Kind, name string, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	if name == statusSubresource {
		return g.Client.Status().Patch(ctx, obj, StatusPatch{Was: was})
	}
	return g.write(ctx, obj, was, func(ctx context.Context) error {
		return g.Client.SubResource(name).Patch(ctx, obj, SameObject(was, patchByKeys(was)))
	})
}

// write executes a write if the validators, if any, allow it.
func (g *Guard) write(ctx context.Context, obj, was client.Object, do func(context.Context) error) error {
	if g.Validator == nil {
		return do(ctx)
	}
	return g.Validator.Write(ctx, obj, was, do)
}

// PatchIn changes a cluster-scoped object that belongs to the tenant because of
// a namespace.
func (g *Guard) PatchIn(ctx context.Context, k *kinds.Kind, namespace string, obj, was client.Object) error {
	if err := g.checkKind(k, obj, was); err != nil {
		return err
	}
	if err := g.checkNamespace(ctx, namespace); err != nil {
		return err
	}
	return g.Client.Patch(ctx, obj, SameObject(was, client.MergeFrom(was)))
}

// CreateOwn creates an object that the syncer owns in a namespace of the
// tenant. It is not a copy, so it is not validated.
func (g *Guard) CreateOwn(ctx context.Context, k *kinds.Kind, obj client.Object) error {
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return g.Client.Create(ctx, obj)
}

// PatchOwn changes an object that was created by CreateOwn.
func (g *Guard) PatchOwn(ctx context.Context, k *kinds.Kind, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	return g.Client.Patch(ctx, obj, SameObject(was, client.MergeFrom(was)))
}

// Apply applies an object that the syncer owns in a namespace of the tenant. It
// is not a copy, so it is not validated.
func (g *Guard) Apply(ctx context.Context, namespace string, obj runtime.ApplyConfiguration) error {
	if err := g.checkNamespace(ctx, namespace); err != nil {
		return err
	}
	return g.Client.Apply(ctx, obj, fieldOwner, client.ForceOwnership)
}

// Delete deletes exactly this object, not another of the same name.
func (g *Guard) Delete(ctx context.Context, k *kinds.Kind, obj client.Object, grace *int64) error {
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return DeleteObject(ctx, g.Client, obj, grace)
}

// check ensures that a write goes to a namespace of the tenant, and that the
// object is of a kind. The last of two states is that in the super cluster.
func (g *Guard) check(ctx context.Context, k *kinds.Kind, states ...client.Object) error {
	is := states[len(states)-1]
	if ns, ok := is.(*corev1.Namespace); ok {
		if err := g.owns(ns); err != nil {
			return err
		}
		return g.checkKind(k, states...)
	}
	if err := g.checkNamespace(ctx, is.GetNamespace()); err != nil {
		return err
	}
	if err := g.checkKind(k, states...); err != nil {
		return err
	}
	// A server ignores the namespace of a cluster-scoped object.
	namespaced, err := g.Namespaced(is)
	if err == nil && !namespaced {
		g.Rejected()
		return ErrKind
	}
	return err
}

// checkKind ensures that the states of one object are of a kind.
func (g *Guard) checkKind(k *kinds.Kind, states ...client.Object) error {
	for _, obj := range states {
		if !k.Is(obj) || !isNamed(obj) || client.ObjectKeyFromObject(obj) != client.ObjectKeyFromObject(states[0]) {
			g.Rejected()
			return ErrKind
		}
	}
	return nil
}

// checkNamespace ensures that a namespace belongs to the tenant.
func (g *Guard) checkNamespace(ctx context.Context, name string) error {
	ns, err := g.Namespace(ctx, name)
	if err != nil {
		return err
	}
	if ns == nil {
		return ErrNoNamespace
	}
	return g.owns(ns)
}

// owns returns an error unless a namespace belongs to the tenant.
func (g *Guard) owns(ns *corev1.Namespace) error {
	if owner := ns.Annotations[names.VCUID]; owner != "" && owner == string(g.UID) {
		return nil
	}
	g.Rejected()
	return ErrForeign
}

// isNamed reports whether the name and namespace of an object are valid path
// segments.
func isNamed(obj client.Object) bool {
	return obj.GetName() != "" && len(content.IsPathSegmentName(obj.GetName())) == 0 &&
		len(content.IsPathSegmentName(obj.GetNamespace())) == 0
}
