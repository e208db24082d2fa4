package engine

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

// errForeign is a write that the guard refused. The text names nothing of the super cluster, since tenants read it.
var errForeign = errors.New("the name that this object would have in the super cluster belongs to somebody else; use another name")

// errNoNamespace is a write into a namespace that is not there yet, or no more.
var errNoNamespace = errors.New("the namespace does not exist in the super cluster")

// statusSubresource is where what is said about an object is written, and not what it is to be.
const statusSubresource = "status"

// errKind is a write of an object that is not of the kind that it is written as.
var errKind = errors.New("the object is not of the kind that it is synced as, or cannot have its name")

// guard is the one way by which objects of a tenant are written to the super cluster. It refuses every write of an object of
// another kind than the one that is reconciled, of an object outside of namespaces other than a namespace, and of an object in a
// namespace that does not carry the UID of the tenant's VirtualCluster.
type guard struct {
	uid    types.UID
	client client.Client
	// namespace returns what is known of a namespace, nil if it does not exist.
	namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	// namespaced reports whether the super cluster keeps objects of the type of this one in namespaces.
	namespaced func(obj runtime.Object) (bool, error)
	// refused is told of every write that was refused.
	refused func()
	// validate does a write that validators allow; nil if there are none. Was is nil for what is new.
	validate func(ctx context.Context, obj, was client.Object, write func(context.Context) error) error
}

// create creates an object; obj becomes what the server made of it.
func (g *guard) create(ctx context.Context, k *kinds.Kind, obj client.Object) error {
	if ns, ok := obj.(*corev1.Namespace); ok {
		if err := g.checkKind(k, ns); err != nil {
			return err
		}
		// An existing namespace of the name is kept: the server rejects a second one.
		return g.write(ctx, ns, nil, func(ctx context.Context) error { return g.client.Create(ctx, ns) })
	}
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return g.write(ctx, obj, nil, func(ctx context.Context) error {
		return untilChosen(k, func() error { return g.client.Create(ctx, obj) })
	})
}

// patch changes an object from what it was to what it should be; obj becomes what the server made of it.
func (g *guard) patch(ctx context.Context, k *kinds.Kind, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	return g.write(ctx, obj, was, func(ctx context.Context) error {
		return untilChosen(k, func() error { return g.client.Patch(ctx, obj, sameObject(was, client.MergeFrom(was))) })
	})
}

// patchSubresource changes an object through one of its subresources; obj becomes what the server made of it.
func (g *guard) patchSubresource(ctx context.Context, k *kinds.Kind, name string, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	if name == statusSubresource {
		return g.client.Status().Patch(ctx, obj, statusPatch{was})
	}
	return g.write(ctx, obj, was, func(ctx context.Context) error {
		return g.client.SubResource(name).Patch(ctx, obj, sameObject(was, patchByKeys(was)))
	})
}

// write does a write, past the validators if there are any.
func (g *guard) write(ctx context.Context, obj, was client.Object, do func(context.Context) error) error {
	if g.validate == nil {
		return do(ctx)
	}
	return g.validate(ctx, obj, was, do)
}

// patchIn changes an object without a namespace that belongs to the tenant because of this one.
func (g *guard) patchIn(ctx context.Context, k *kinds.Kind, namespace string, obj, was client.Object) error {
	if err := g.checkKind(k, obj, was); err != nil {
		return err
	}
	if err := g.checkNamespace(ctx, namespace); err != nil {
		return err
	}
	return g.client.Patch(ctx, obj, sameObject(was, client.MergeFrom(was)))
}

// createOwn and patchOwn write the engine's own objects in a namespace. They are no copies, so validators are not asked.
func (g *guard) createOwn(ctx context.Context, k *kinds.Kind, obj client.Object) error {
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return g.client.Create(ctx, obj)
}

func (g *guard) patchOwn(ctx context.Context, k *kinds.Kind, obj, was client.Object) error {
	if err := g.check(ctx, k, obj, was); err != nil {
		return err
	}
	return g.client.Patch(ctx, obj, sameObject(was, client.MergeFrom(was)))
}

// apply makes or changes what the engine itself keeps beside a tenant's copies, which is no copy and not the tenant's to be asked about.
func (g *guard) apply(ctx context.Context, namespace string, obj runtime.ApplyConfiguration) error {
	if err := g.checkNamespace(ctx, namespace); err != nil {
		return err
	}
	return g.client.Apply(ctx, obj, tokensOwner, client.ForceOwnership)
}

// remove deletes exactly this object, not another of the same name.
func (g *guard) remove(ctx context.Context, k *kinds.Kind, obj client.Object, grace *int64) error {
	if err := g.check(ctx, k, obj); err != nil {
		return err
	}
	return removeObject(ctx, g.client, obj, grace)
}

// check ensures that a write goes to a namespace of the tenant, and that the object is of a kind. The last of two states is the
// super cluster's.
func (g *guard) check(ctx context.Context, k *kinds.Kind, states ...client.Object) error {
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
	namespaced, err := g.namespaced(is)
	if err == nil && !namespaced {
		g.refused()
		return errKind
	}
	return err
}

// checkKind makes sure that states of one object are of a kind.
func (g *guard) checkKind(k *kinds.Kind, states ...client.Object) error {
	for _, obj := range states {
		if !k.Is(obj) || !isNamed(obj) || client.ObjectKeyFromObject(obj) != client.ObjectKeyFromObject(states[0]) {
			g.refused()
			return errKind
		}
	}
	return nil
}

// checkNamespace makes sure that a namespace is the tenant's.
func (g *guard) checkNamespace(ctx context.Context, name string) error {
	ns, err := g.namespace(ctx, name)
	if err != nil {
		return err
	}
	if ns == nil {
		return errNoNamespace
	}
	return g.owns(ns)
}

// owns says whether a namespace is the tenant's.
func (g *guard) owns(ns *corev1.Namespace) error {
	if owner := ns.Annotations[names.VCUID]; owner != "" && owner == string(g.uid) {
		return nil
	}
	g.refused()
	return errForeign
}

// isNamed reports whether the name and namespace of an object are single elements of a path.
func isNamed(obj client.Object) bool {
	return obj.GetName() != "" && len(content.IsPathSegmentName(obj.GetName())) == 0 &&
		len(content.IsPathSegmentName(obj.GetNamespace())) == 0
}
