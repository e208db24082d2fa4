package virtualcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// podGracePeriodSeconds is the grace period of pods whose tenant is deleted:
// the default of Kubernetes, also for pods that ask for more.
const podGracePeriodSeconds = corev1.DefaultTerminationGracePeriodSeconds

// maxNamed is how many namespaces a message names.
const maxNamed = 3

// finalize takes the tenant away and lets the VirtualCluster go once nothing is
// left.
func (r *Reconciler) finalize(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (reconcile.Result, error) {
	r.Metrics.forget(vc.UID)
	if !controllerutil.ContainsFinalizer(vc, Finalizer) {
		return reconcile.Result{}, nil
	}
	before := vc.DeepCopy()
	waitingFor, err := r.tearDown(ctx, vc)
	if waitingFor != "" || err != nil {
		return r.report(ctx, before, vc, outcome{waitingFor: waitingFor, err: err})
	}
	if err := r.patchFinalizer(ctx, vc, controllerutil.RemoveFinalizer); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.record(vc, []news{{corev1.EventTypeNormal, eventRemoved, actionRemove, "Nothing of the tenant is left"}})
	return reconcile.Result{}, nil
}

// tearDown goes one step further, and says what has to be gone before the next:
// the tenant's namespaces, the control plane, the root namespace. Empty means
// that nothing is left.
//
// The syncer stops by itself when the VirtualCluster has a deletion time. A
// namespace that it made at the last moment is either found here or, having the
// root namespace as its owner, collected as garbage.
func (r *Reconciler) tearDown(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (waitingFor string, err error) {
	key, err := clusterKey(vc)
	if err != nil {
		// Nothing was ever made under a name that cannot be.
		return "", nil //nolint:nilerr // see above
	}
	vc.Status.ClusterNamespace = key
	root, err := r.ownRoot(ctx, vc, key)
	if err != nil {
		return "", err
	}
	if waitingFor, err = r.removeTenantNamespaces(ctx, vc, key); waitingFor != "" || err != nil {
		return waitingFor, err
	}
	if isTerminating(root) {
		// The control plane was deleted before it; its deletion is requested
		// once more afterwards.
		return "namespace " + key, nil
	}
	if waitingFor, err = r.removeControlPlane(ctx, vc, root); waitingFor != "" || err != nil || root == nil {
		return waitingFor, err
	}
	return "namespace " + key, r.deleteNamespace(ctx, root)
}

// ownRoot reads the root namespace around the cache: nil if there is none that
// belongs to the VirtualCluster.
func (r *Reconciler) ownRoot(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, key string) (*corev1.Namespace, error) {
	root := &corev1.Namespace{}
	err := r.Live.Get(ctx, types.NamespacedName{Name: key}, root)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get root namespace %s: %w", key, err)
	}
	if !owns(vc, root) {
		return nil, nil
	}
	return root, nil
}

// removeTenantNamespaces deletes the namespaces that the syncer made for the
// tenant. When the cache has none, the apiserver has the last word.
func (r *Reconciler) removeTenantNamespaces(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, key string) (string, error) {
	left, err := listTenantNamespaces(ctx, r.Client, vc, key)
	if err == nil && len(left) == 0 {
		left, err = listTenantNamespaces(ctx, r.Live, vc, key)
	}
	if err != nil {
		return "", err
	}
	for i := range left {
		if err := r.removeTenantNamespace(ctx, &left[i]); err != nil {
			return "", err
		}
	}
	return describe(left), nil
}

// removeTenantNamespace deletes a namespace of the tenant, and its pods before
// it: a namespace that still has pods when the super cluster begins to empty it
// is left alone for half their grace period before it is reconciled again. Pods
// that are being deleted with a longer grace period get this one.
func (r *Reconciler) removeTenantNamespace(ctx context.Context, namespace *corev1.Namespace) error {
	err := r.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace.Name), client.GracePeriodSeconds(podGracePeriodSeconds))
	if err != nil {
		return fmt.Errorf("delete pods of namespace %s: %w", namespace.Name, err)
	}
	return r.deleteNamespace(ctx, namespace)
}

// listTenantNamespaces lists the tenant's namespaces except the root. Labels
// find them; the UID says whose they are.
func listTenantNamespaces(
	ctx context.Context, reader client.Reader, vc *tenancyv1alpha1.VirtualCluster, key string,
) ([]corev1.Namespace, error) {
	list := &corev1.NamespaceList{}
	if err := reader.List(ctx, list, client.MatchingLabels(names.OwnerLabels(vc))); err != nil {
		return nil, fmt.Errorf("list namespaces of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	return slices.DeleteFunc(list.Items, func(namespace corev1.Namespace) bool {
		return namespace.Name == key || !owns(vc, &namespace)
	}), nil
}

// removeControlPlane waits for the provisioner to say that nothing is left.
func (r *Reconciler) removeControlPlane(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, root *corev1.Namespace,
) (string, error) {
	way, err := findProvisioner(r.Provisioners, chooseProvisioner(vc, root, r.Default))
	if err != nil {
		if root == nil {
			// No control plane is made before the root namespace.
			return "", nil
		}
		return "", err
	}
	gone, err := way.Delete(ctx, vc)
	if err != nil || gone {
		return "", err
	}
	return "the control plane", nil
}

// deleteNamespace deletes this very namespace, and not one that was made under
// its name since.
func (r *Reconciler) deleteNamespace(ctx context.Context, namespace *corev1.Namespace) error {
	if isTerminating(namespace) {
		return nil
	}
	err := r.Client.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// describe names the first few namespaces, in a fixed order.
func describe(namespaces []corev1.Namespace) string {
	if len(namespaces) == 0 {
		return ""
	}
	all := make([]string, 0, len(namespaces))
	for i := range namespaces {
		all = append(all, namespaces[i].Name)
	}
	slices.Sort(all)
	more := ""
	if len(all) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(all)-maxNamed)
		all = all[:maxNamed]
	}
	return "namespace " + strings.Join(all, ", ") + more
}
