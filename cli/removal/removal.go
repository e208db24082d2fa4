// Package removal deletes an installation of VirtualCluster with everything that
// belongs to it, tenants included, and nothing else.
//
// It keeps no state: what is left of a removal that was interrupted is found
// again by labels and names.
package removal

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// pollInterval is the interval at which objects are read that are being deleted.
const pollInterval = 500 * time.Millisecond

// Removal deletes the installation of a super cluster.
type Removal struct {
	// Client is that of the user.
	Client client.Client
	// Resources lists the kinds of the super cluster.
	Resources discovery.DiscoveryInterface
	// Namespace is that of the installation.
	Namespace string
	// Deleted is called for each object that was deleted, or that would be, with
	// its identity: no Secrets are printed.
	Deleted func(*unstructured.Unstructured) error
	// Progress is called with what the removal does, or waits for.
	Progress func(format string, args ...any)
	// DryRun deletes nothing.
	DryRun bool
	// Abandon removes the finalizers of components that do not run any more. Data
	// outside of the super cluster is left.
	Abandon bool

	// release is the name of the release of Helm; empty if there is none.
	release string
}

// step is a part of a removal. Each can be repeated.
type step struct {
	name string
	run  func(context.Context) error
}

// Run deletes everything, in an order in which nothing is left without what
// deletes it.
func (r *Removal) Run(ctx context.Context) error {
	steps := []step{
		{"VirtualClusters, with everything that the tenants have", r.virtualClusters},
		{"namespaces of tenants without a VirtualCluster", r.orphans},
		{"releases of Helm", r.releases},
		{"objects of the installation", r.objects},
		{"objects that the components have made", r.leftovers},
		{"CustomResourceDefinitions", r.definitions},
		{"namespaces of the installation", r.namespaces},
	}
	for i, s := range steps {
		r.Progress("%d of %d: %s", i+1, len(steps), s.name)
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes objects, as they were read, and waits until they are gone.
func (r *Removal) delete(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := r.deleteOne(ctx, object); err != nil {
			return err
		}
	}
	if r.DryRun {
		return nil
	}
	for _, object := range objects {
		if err := r.await(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// deleteOne starts the deletion of an object, with all that it owns.
func (r *Removal) deleteOne(ctx context.Context, object *unstructured.Unstructured) error {
	if r.DryRun {
		return r.Deleted(identity(object))
	}
	uid := object.GetUID()
	err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy("Foreground"))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, and another object may have its name
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", describe(object), err)
	}
	return r.Deleted(identity(object))
}

// await waits until an object is gone.
func (r *Removal) await(ctx context.Context, object *unstructured.Unstructured) error {
	last := object.DeepCopy()
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), last)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && last.GetUID() != object.GetUID() {
			return true, nil
		}
		return false, err
	})
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		return fmt.Errorf("wait for the deletion of %s: %w", describe(object), err)
	}
	return &exit.Error{
		Code: exit.Of(ctx.Err()),
		Err:  fmt.Errorf("wait for the deletion of %s: %w; its finalizers are %q", describe(object), ctx.Err(), last.GetFinalizers()),
		Next: "See its conditions, and run the command again: it continues",
	}
}

// identity returns what identifies an object, and nothing else of it.
func identity(object *unstructured.Unstructured) *unstructured.Unstructured {
	return identityOf(object.GroupVersionKind(), object)
}

func identityOf(kind schema.GroupVersionKind, object client.Object) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(object.GetNamespace())
	o.SetName(object.GetName())
	o.SetUID(object.GetUID())
	return o
}

// describe names an object for a message.
func describe(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
