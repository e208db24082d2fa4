// Package projectclaim creates the VirtualClusters of projects that users have
// requested, and deletes them with their ProjectClaims.
//
// No limit is counted. A claim has the name of its project, and its
// VirtualCluster that of a slot of the user: the apiserver gives a name once.
package projectclaim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Finalizer keeps a ProjectClaim, and so the name of the project, until nothing
// of the project is left.
const Finalizer = names.Domain + "/project"

const fieldOwner = client.FieldOwner("vc-manager")

const (
	workers = 4
	timeout = 30 * time.Second
	// firstRetry and lastRetry bound the backoff after errors.
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Minute
	// rejectedFor is how long a rejected claim is kept for the gateway, which
	// deletes it when it has read the reason.
	rejectedFor = time.Minute
	// leftoverRetry is how often namespaces are looked for that are left of a
	// VirtualCluster which vanished without its finalizer.
	leftoverRetry = 10 * time.Second
)

// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters,verbs=create;delete
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=projecttemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=projectclaims,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=projectclaims/status,verbs=patch

// Reconciler reconciles ProjectClaims.
type Reconciler struct {
	// Client reads from the manager's cache.
	Client client.Client
	// Live reads around the cache: a stale answer could create a second
	// VirtualCluster for a claim, or free a name too early.
	Live client.Reader
	// Events records why claims are rejected, at their templates: a rejected claim
	// is deleted.
	Events events.EventRecorder
}

// SetupWithManager adds the reconciler to a manager whose cache has the
// namespaces of tenants.
func (r *Reconciler) SetupWithManager(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).
		Named("projectclaim").
		For(&tenancyv1alpha1.ProjectClaim{}).
		Watches(&tenancyv1alpha1.VirtualCluster{}, handler.EnqueueRequestsFromMapFunc(claimOf)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   timeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// claimOf leads from a VirtualCluster to the claim with the name of its project.
func claimOf(_ context.Context, object client.Object) []reconcile.Request {
	vc, ok := object.(*tenancyv1alpha1.VirtualCluster)
	if !ok || vc.Spec.Alias == "" || vc.Annotations[names.ProjectClaim] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: vc.Spec.Alias}}}
}

// Reconcile creates the VirtualCluster of a claim, or deletes one of the two
// when the other one is gone.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	claim := &tenancyv1alpha1.ProjectClaim{}
	if err := r.Client.Get(ctx, req.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	bound := meta.FindStatusCondition(claim.Status.Conditions, tenancyv1alpha1.ConditionBound)
	switch {
	case !claim.DeletionTimestamp.IsZero():
		return r.finalize(ctx, claim)
	case bound == nil:
		return reconcile.Result{}, r.bind(ctx, claim)
	case bound.Status == metav1.ConditionTrue:
		return reconcile.Result{}, r.follow(ctx, claim)
	}
	if left := time.Until(bound.LastTransitionTime.Add(rejectedFor)); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, r.delete(ctx, claim)
}

// bind creates the VirtualCluster of a claim, and reports it or why there is
// none.
func (r *Reconciler) bind(ctx context.Context, claim *tenancyv1alpha1.ProjectClaim) error {
	before := claim.DeepCopy()
	if controllerutil.AddFinalizer(claim, Finalizer) {
		if err := r.Client.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
			return fmt.Errorf("add the finalizer of ProjectClaim %s: %w", claim.Name, client.IgnoreNotFound(err))
		}
	}
	vc, why, err := r.place(ctx, claim)
	if err != nil {
		return fmt.Errorf("create the VirtualCluster of ProjectClaim %s: %w", claim.Name, err)
	}
	before = claim.DeepCopy()
	condition := metav1.Condition{
		Type: tenancyv1alpha1.ConditionBound, Status: metav1.ConditionTrue, ObservedGeneration: claim.Generation,
		Reason: tenancyv1alpha1.ReasonBound, Message: "The project has a VirtualCluster",
	}
	if vc != nil {
		claim.Status.VirtualCluster = &tenancyv1alpha1.VirtualClusterReference{Namespace: vc.Namespace, Name: vc.Name, UID: vc.UID}
	} else {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, why.reason, why.message
	}
	meta.SetStatusCondition(&claim.Status.Conditions, condition)
	if err := r.Client.Status().Patch(ctx, claim, client.MergeFrom(before), fieldOwner); err != nil {
		return fmt.Errorf("write the status of ProjectClaim %s: %w", claim.Name, client.IgnoreNotFound(err))
	}
	return nil
}

// follow deletes the claim of a VirtualCluster that an admin has deleted, when
// that is gone.
func (r *Reconciler) follow(ctx context.Context, claim *tenancyv1alpha1.ProjectClaim) error {
	of := claim.Status.VirtualCluster
	if of == nil {
		return nil
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, vc)
	switch {
	case apierrors.IsNotFound(err) || err == nil && vc.UID != of.UID:
		return r.delete(ctx, claim)
	case err != nil:
		return fmt.Errorf("get the VirtualCluster of ProjectClaim %s: %w", claim.Name, err)
	}
	return nil
}

func (r *Reconciler) delete(ctx context.Context, claim *tenancyv1alpha1.ProjectClaim) error {
	if err := r.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ProjectClaim %s: %w", claim.Name, err)
	}
	return nil
}

// finalize deletes the VirtualCluster of a claim, and frees the name when
// nothing of the project is left.
func (r *Reconciler) finalize(ctx context.Context, claim *tenancyv1alpha1.ProjectClaim) (reconcile.Result, error) {
	all, _, err := r.virtualClusters(ctx, claim)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range all {
		if !all[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, &all[i], client.Preconditions{UID: &all[i].UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("delete the VirtualCluster of ProjectClaim %s: %w", claim.Name, err)
		}
	}
	if len(all) > 0 {
		return reconcile.Result{}, nil // its deletion leads here again
	}
	left, err := r.hasLeftovers(ctx, claim.Status.VirtualCluster)
	if left || err != nil {
		return reconcile.Result{RequeueAfter: leftoverRetry}, err
	}
	before := claim.DeepCopy()
	if controllerutil.RemoveFinalizer(claim, Finalizer) {
		err = r.Client.Patch(ctx, claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("remove the finalizer of ProjectClaim %s: %w", claim.Name, err)
	}
	return reconcile.Result{}, nil
}

// hasLeftovers reports whether there are namespaces of a VirtualCluster that is
// gone: one whose finalizer was removed by hand leaves them.
func (r *Reconciler) hasLeftovers(ctx context.Context, of *tenancyv1alpha1.VirtualClusterReference) (bool, error) {
	if of == nil {
		return false, nil
	}
	list := &corev1.NamespaceList{}
	labels := client.MatchingLabels{names.VCNamespace: of.Namespace, names.VCName: of.Name}
	if err := r.Live.List(ctx, list, labels); err != nil {
		return false, fmt.Errorf("list namespaces of VirtualCluster %s/%s: %w", of.Namespace, of.Name, err)
	}
	for i := range list.Items {
		if list.Items[i].Annotations[names.VCUID] == string(of.UID) {
			return true, nil
		}
	}
	return false, nil
}
