package removal

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/orphans"
)

// renewedWithin is how long a Lease may take to be renewed: longer than the
// longest interval of a component.
const renewedWithin = 15 * time.Second

// virtualClusters deletes all VirtualClusters and waits until vc-manager has
// deleted what the tenants have.
func (r *Removal) virtualClusters(ctx context.Context) error {
	list := &tenancyv1alpha1.VirtualClusterList{}
	err := r.Client.List(ctx, list)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || err == nil && len(list.Items) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list VirtualClusters: %w", err)
	}
	if !r.Abandon {
		if err := r.finalizable(ctx, len(list.Items)); err != nil {
			return err
		}
	}
	for i := range list.Items {
		if err := r.deleteOne(ctx, identityOf(tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"), &list.Items[i])); err != nil {
			return err
		}
	}
	if r.DryRun {
		return nil
	}
	if r.Abandon {
		if err := r.abandon(ctx); err != nil {
			return err
		}
	}
	return r.awaitVirtualClusters(ctx)
}

// finalizable reports why the deletion of VirtualClusters would never end: their
// finalizers are those of vc-manager, and vc-host deletes the data of hosted
// ones.
func (r *Removal) finalizable(ctx context.Context, tenants int) error {
	needed := []string{installation.Manager}
	hosted := &tenancyv1alpha1.HostedControlPlaneList{}
	err := r.Client.List(ctx, hosted, client.Limit(1))
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list HostedControlPlanes: %w", err)
	}
	if len(hosted.Items) > 0 {
		needed = append(needed, installation.Host)
	}
	for _, name := range needed {
		alive, err := r.isAlive(ctx, name)
		if err != nil {
			return err
		}
		if !alive {
			return &exit.Error{
				Code: exit.Failed,
				Err: fmt.Errorf("delete %d VirtualClusters: %s, which deletes what the tenants have, does not run in namespace %s",
					tenants, name, r.Namespace),
				Next: fmt.Sprintf("Start it, and run the command again. kubectl vc doctor prints why it does not run; "+
					"after helm uninstall, install the chart again with --namespace %s --take-ownership. "+
					"If it cannot run any more: --abandon-tenants", r.Namespace),
			}
		}
	}
	return nil
}

// isAlive reports whether a replica of a component renews its Lease. It compares
// no times, since the clock of the user may differ.
func (r *Removal) isAlive(ctx context.Context, component string) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, renewedWithin)
	defer cancel()
	first := map[types.UID]string{}
	err := wait.PollUntilContextCancel(bounded, pollInterval, true, func(ctx context.Context) (bool, error) {
		leases, err := installation.Leases(ctx, r.Client, r.Namespace, component)
		for _, l := range leases {
			was, seen := first[l.UID]
			first[l.UID] = cmp.Or(was, l.ResourceVersion)
			if seen && was != l.ResourceVersion {
				return true, nil
			}
		}
		return len(leases) == 0, err
	})
	if err != nil && bounded.Err() == nil {
		return false, err
	}
	return err == nil && len(first) > 0, ctx.Err()
}

// awaitVirtualClusters waits until there are none, and reports what they wait
// for.
func (r *Removal) awaitVirtualClusters(ctx context.Context) error {
	last := ""
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		list := &tenancyv1alpha1.VirtualClusterList{}
		if err := r.Client.List(ctx, list); err != nil {
			return false, err
		}
		if now := waiting(list.Items); now != last && now != "" {
			r.Progress("  %s", now)
			last = now
		}
		return len(list.Items) == 0, nil
	})
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		return fmt.Errorf("wait for the deletion of the VirtualClusters: %w", err)
	}
	return &exit.Error{
		Code: exit.Of(ctx.Err()),
		Err:  fmt.Errorf("wait for the deletion of the VirtualClusters: %w: %s", ctx.Err(), last),
		Next: "See what it waits for: kubectl vc describe NAME -n NAMESPACE. Run the command again: it continues",
	}
}

// waiting describes VirtualClusters that are being deleted, and what the first
// one waits for.
func waiting(all []tenancyv1alpha1.VirtualCluster) string {
	if len(all) == 0 {
		return ""
	}
	first := &all[0]
	text := fmt.Sprintf("%d left, such as %s/%s", len(all), first.Namespace, first.Name)
	c := meta.FindStatusCondition(first.Status.Conditions, tenancyv1alpha1.ConditionReady)
	if c != nil && c.Reason == tenancyv1alpha1.ReasonTerminating {
		text += ": " + terminal.Line(c.Message)
	}
	return text
}

// orphans deletes namespaces of tenants whose VirtualCluster is gone, such as
// after an admin has removed its finalizer.
func (r *Removal) orphans(ctx context.Context) error {
	if r.Abandon {
		if err := r.abandon(ctx); err != nil { // of an earlier command, too
			return err
		}
	}
	// VirtualClusters are read last: one that is created meanwhile is not missed.
	namespaces, list := &corev1.NamespaceList{}, &tenancyv1alpha1.VirtualClusterList{}
	if err := r.Client.List(ctx, namespaces, client.HasLabels{names.VCName, names.VCNamespace}); err != nil {
		return fmt.Errorf("list namespaces of tenants: %w", err)
	}
	if err := r.Client.List(ctx, list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list VirtualClusters: %w", err)
	}
	var found []*unstructured.Unstructured
	left := orphans.Without(namespaces.Items, list.Items)
	for i := range left {
		found = append(found, identityOf(corev1.SchemeGroupVersion.WithKind(namespaceKind), &left[i]))
	}
	return r.delete(ctx, found)
}

// byName selects objects by their name, in all namespaces.
func byName(name string) client.ListOption {
	return client.MatchingFields{metav1.ObjectNameField: name}
}

// list lists objects of a kind. A kind that is not served has none.
func (r *Removal) list(
	ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption,
) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := r.Client.List(ctx, list, options...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list objects of kind %s: %w", kind.Kind, err)
	}
	found := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}
