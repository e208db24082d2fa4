// Package guard writes to the super cluster on behalf of one tenant, and rejects every write that would cross tenants.
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

// ErrForeign is a write that the guard refused. The text names nothing of the super cluster, since tenants read it.
var ErrForeign = errors.New("the name that this object would have in the super cluster belongs to somebody else; use another name")

// ErrNoNamespace is a write into a namespace that is not there yet, or no more.
var ErrNoNamespace = errors.New("the namespace does not exist in the super cluster")

// fieldOwner owns what the syncer applies.
const fieldOwner = client.FieldOwner("vc-syncer")

// statusSubresource is where what is said about an object is written, and not what it is to be.
const statusSubresource = "status"

// ErrKind is a write of an object that is not of the kind that it is written as.
var ErrKind = errors.New("the object is not of the kind that it is synced as, or cannot have its name")

// Guard is the one way by which objects of a tenant are written to the super cluster. It refuses every write of an object of
// another kind than the one that is reconciled, of an object outside of namespaces other than a namespace, and of an object in a
// namespace that does not carry the UID of the tenant's VirtualCluster.
type Guard struct {
	UID    types.UID
	Client client.Client
	// Namespace returns what is known of a namespace, nil if it does not exist.
	Namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	// Namespaced reports whether the super cluster keeps objects of the type of this one in namespaces.
	Namespaced func(obj runtime.Object) (bool, error)
	// Rejected is told of every write that was refused.
	Rejected func()
	// Validate does a write that validators allow; nil if there are none. Was is nil for what is new.
	Validate func(ctx context.Context, obj, was client.Object, write func(context.Context) error) error
}

// Create creates an object; obj becomes what the server made of it.
func (g *Guard) Create(ctx context.Context, k *kinds.Kind, obj client.Object) error {
	if ns, ok := obj.(*corev1.Namespace); ok {
		if err := g.checkKind(k, ns); err != nil {
			return err
		}
		// An existing namespace of the name is kept: the server rejects a second one.
		return g.write(ctx, ns, nil, func(ctx context.Context) error { return g.Client.Create(ctx, ns) })
	}
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return g.write(ctx, obj, nil, func(ctx context.Context) error {
		return untilChosen(k, func() error { return g.Client.Create(ctx, obj) })
	})
}

// Patch changes an object from what it was to what it should be; obj becomes what the server made of it.
func (g *Guard) Patch(ctx context.Context, k *kinds.Kind, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	return g.write(ctx, obj, was, func(ctx context.Context) error {
		return untilChosen(k, func() error { return g.Client.Patch(ctx, obj, SameObject(was, client.MergeFrom(was))) })
	})
}

// PatchSubresource changes an object through one of its subresources; obj becomes what the server made of it.
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

// write does a write, past the validators if there are any.
func (g *Guard) write(ctx context.Context, obj, was client.Object, do func(context.Context) error) error {
	if g.Validate == nil {
		return do(ctx)
	}
	return g.Validate(ctx, obj, was, do)
}

// PatchIn changes an object without a namespace that belongs to the tenant because of this one.
func (g *Guard) PatchIn(ctx context.Context, k *kinds.Kind, namespace string, obj, was client.Object) error {
	if err := g.checkKind(k, obj, was); err != nil {
		return err
	}
	if err := g.checkNamespace(ctx, namespace); err != nil {
		return err
	}
	return g.Client.Patch(ctx, obj, SameObject(was, client.MergeFrom(was)))
}

// CreateOwn creates an object of the syncer's own in a namespace of the tenant. It is no copy, so validators are not asked.
func (g *Guard) CreateOwn(ctx context.Context, k *kinds.Kind, obj client.Object) error {
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return g.Client.Create(ctx, obj)
}

// PatchOwn changes an object of the syncer's own, as CreateOwn creates it.
func (g *Guard) PatchOwn(ctx context.Context, k *kinds.Kind, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	return g.Client.Patch(ctx, obj, SameObject(was, client.MergeFrom(was)))
}

// Apply makes or changes what the engine itself keeps beside a tenant's copies, which is no copy and not the tenant's to be asked about.
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

// check ensures that a write goes to a namespace of the tenant, and that the object is of a kind. The last of two states is the
// super cluster's.
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
	// A server ignores the namespace of an object that it keeps outside of namespaces.
	namespaced, err := g.Namespaced(is)
	if err == nil && !namespaced {
		g.Rejected()
		return ErrKind
	}
	return err
}

// checkKind makes sure that states of one object are of a kind.
func (g *Guard) checkKind(k *kinds.Kind, states ...client.Object) error {
	for _, obj := range states {
		if !k.Is(obj) || !isNamed(obj) || client.ObjectKeyFromObject(obj) != client.ObjectKeyFromObject(states[0]) {
			g.Rejected()
			return ErrKind
		}
	}
	return nil
}

// checkNamespace makes sure that a namespace is the tenant's.
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

// owns says whether a namespace is the tenant's.
func (g *Guard) owns(ns *corev1.Namespace) error {
	if owner := ns.Annotations[names.VCUID]; owner != "" && owner == string(g.UID) {
		return nil
	}
	g.Rejected()
	return ErrForeign
}

// isNamed reports whether the name and namespace of an object are single elements of a path.
func isNamed(obj client.Object) bool {
	return obj.GetName() != "" && len(content.IsPathSegmentName(obj.GetName())) == 0 &&
		len(content.IsPathSegmentName(obj.GetNamespace())) == 0
}
