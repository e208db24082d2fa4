package converted

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// releaser lets namespaces that are deleted go. Their bindings go when nothing
// else is left in them: until then, the tenant can remove the finalizers that hold
// the rest. If the tenant itself is deleted, the releaser removes these.
type releaser struct {
	client     client.Client
	live       client.Reader
	finalizing *finalizing
}

func addReleaser(mgr manager.Manager, finalizing *finalizing) error {
	deleted := predicate.NewPredicateFuncs(func(namespace client.Object) bool {
		return namespace.GetLabels()[names.Converted] != "" && !namespace.GetDeletionTimestamp().IsZero()
	})
	return builder.ControllerManagedBy(mgr).Named("converted-bindings").
		For(&corev1.Namespace{}, builder.WithPredicates(deleted)).
		Complete(&releaser{client: mgr.GetClient(), live: mgr.GetAPIReader(), finalizing: finalizing})
}

// Reconcile implements reconcile.Reconciler.
func (r *releaser) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, request.NamespacedName, namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	deleted, err := r.isTenantDeleted(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	var result reconcile.Result
	if deleted {
		result.RequeueAfter = recheckDeletion
		if err := r.removeFinalizers(ctx, namespace); err != nil {
			return reconcile.Result{}, err
		}
	}
	if isOnlyBindings(namespace.Status.Conditions) {
		return result, r.releaseBinding(ctx, namespace.Name)
	}
	return result, nil
}

// recheckDeletion is when to reconcile again a namespace of a tenant that is deleted:
// what the tenant's finalizers are may depend on the time.
const recheckDeletion = 15 * time.Second

// isTenantDeleted reports whether the tenant of a namespace is deleted, too.
func (r *releaser) isTenantDeleted(ctx context.Context, namespace *corev1.Namespace) (bool, error) {
	key := names.OwnerKey(namespace.Labels)
	vc := &tenancyv1alpha1.VirtualCluster{}
	err := r.client.Get(ctx, key, vc)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get VirtualCluster %s: %w", key, err)
	}
	return err == nil && namespace.Annotations[names.VCUID] == string(vc.UID) && !vc.DeletionTimestamp.IsZero(), nil
}

// removeFinalizers removes those of the namespace itself, and those of what is
// left in it.
func (r *releaser) removeFinalizers(ctx context.Context, namespace *corev1.Namespace) error {
	if err := r.removeOwn(ctx, namespace.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizers of namespace %s: %w", namespace.Name, err)
	}
	resources := remainingIn(namespace.Status.Conditions)
	if len(resources) == 0 {
		return nil
	}
	as, err := r.finalizing.fenced(ctx, namespace.Labels[names.Converted])
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	_, err = r.finalizing.remove(ctx, as, namespace.Name, resources...)
	return err
}

// removeOwn removes the finalizers in the metadata and in the spec of a namespace,
// which it changes.
func (r *releaser) removeOwn(ctx context.Context, namespace *corev1.Namespace) error {
	if len(namespace.Finalizers) > 0 {
		before := namespace.DeepCopy()
		namespace.Finalizers = nil
		if err := r.client.Patch(ctx, namespace, client.MergeFrom(before), fieldOwner); err != nil {
			return err
		}
	}
	upstream := only(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
	if len(upstream) == len(namespace.Spec.Finalizers) {
		return nil
	}
	namespace.Spec.Finalizers = upstream
	return r.client.SubResource("finalize").Update(ctx, namespace, fieldOwner)
}

// releaseBinding removes the finalizer of the binding in a namespace.
func (r *releaser) releaseBinding(ctx context.Context, namespace string) error {
	key := types.NamespacedName{Namespace: namespace, Name: names.ConvertedRole}
	binding := &rbacv1.RoleBinding{}
	if err := r.live.Get(ctx, key, binding); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := binding.DeepCopy()
	if binding.DeletionTimestamp.IsZero() || !controllerutil.RemoveFinalizer(binding, names.ConvertedFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, binding, patch, fieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of RoleBinding %s: %w", key, err)
	}
	return nil
}

// remaining finds the resources in what the namespace controller reports. A text
// without any releases the binding: a tenant without access is better than a
// namespace that is never gone.
var remaining = regexp.MustCompile(`(\S+) has \d+ resource instances`)

// bindings are the RoleBindings of the super cluster.
var bindings = schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}

// remainingIn returns the resources but RoleBindings that the namespace
// controller has found in a namespace that it empties.
func remainingIn(conditions []corev1.NamespaceCondition) []schema.GroupResource {
	var found []schema.GroupResource
	for _, condition := range conditions {
		if condition.Type != corev1.NamespaceContentRemaining {
			continue
		}
		for _, match := range remaining.FindAllStringSubmatch(condition.Message, -1) {
			if resource := schema.ParseGroupResource(match[1]); resource != bindings {
				found = append(found, resource)
			}
		}
	}
	return found
}

// isOnlyBindings reports whether the namespace controller has looked, and has
// found nothing but RoleBindings.
func isOnlyBindings(conditions []corev1.NamespaceCondition) bool {
	return len(remainingIn(conditions)) == 0 && slices.ContainsFunc(conditions, func(c corev1.NamespaceCondition) bool {
		return c.Type == corev1.NamespaceContentRemaining
	})
}
