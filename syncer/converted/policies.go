// Package converted keeps the NetworkPolicies of converted tenants, which are not
// synced: they have no control plane, and their objects are in the super cluster.
package converted

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

const fieldOwner = client.FieldOwner("vc-syncer")

// Policies keeps the platform's NetworkPolicies in the namespaces of converted
// tenants, beside the tenant's own, from which they follow.
type Policies struct {
	// Pods are all address ranges of pods.
	Pods resources.Ranges
	// Serves reports whether this replica works for a tenant.
	Serves func(types.NamespacedName) bool
	// Interval is how often a replica checks whether it works for a tenant now.
	Interval time.Duration

	// Objects is the cache of [Objects].
	Objects cache.Cache

	super client.Client
}

// SetupWithManager adds a controller of namespaces to a manager of the super
// cluster, which has VirtualClusters in its cache.
func (p *Policies) SetupWithManager(mgr manager.Manager) error {
	p.super = mgr.GetClient()
	return builder.ControllerManagedBy(mgr).Named("converted-policies").
		Watches(&tenancyv1alpha1.VirtualCluster{}, handler.EnqueueRequestsFromMapFunc(p.namespacesOf)).
		WatchesRawSource(source.Kind(p.Objects, &corev1.Namespace{}, &handler.TypedEnqueueRequestForObject[*corev1.Namespace]{})).
		WatchesRawSource(source.Kind(p.Objects, &networkingv1.NetworkPolicy{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, policy *networkingv1.NetworkPolicy) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: policy.Namespace}}}
			},
		))).
		Complete(p)
}

// namespacesOf leads from a VirtualCluster to the namespaces of its tenant, if
// that is converted.
func (p *Policies) namespacesOf(ctx context.Context, vc client.Object) []reconcile.Request {
	list := &corev1.NamespaceList{}
	if err := p.Objects.List(ctx, list, client.MatchingLabels(names.OwnerLabels(vc))); err != nil {
		return nil // the cache is ending
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].Name = list.Items[i].Name
	}
	return requests
}

// Reconcile brings the NetworkPolicies of a namespace up to date.
func (p *Policies) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := p.Objects.Get(ctx, req.NamespacedName, namespace); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	owner := names.OwnerKey(namespace.Labels)
	if !namespace.DeletionTimestamp.IsZero() || owner.Name == "" {
		return reconcile.Result{}, nil
	}
	if !p.Serves(owner) {
		return reconcile.Result{RequeueAfter: p.Interval}, nil
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := p.super.Get(ctx, owner, vc); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if namespace.Annotations[names.VCUID] != string(vc.UID) {
		return reconcile.Result{}, nil // of an earlier one of that name: it is being deleted
	}
	return reconcile.Result{}, p.sync(ctx, vc, namespace)
}

// sync writes the platform's policies of a namespace that are missing or
// different, and then deletes those that are not needed any more.
func (p *Policies) sync(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, namespace *corev1.Namespace) error {
	list := &networkingv1.NetworkPolicyList{}
	if err := p.Objects.List(ctx, list, client.InNamespace(namespace.Name)); err != nil {
		return fmt.Errorf("list the NetworkPolicies of namespace %s: %w", namespace.Name, err)
	}
	var own []*networkingv1.NetworkPolicy
	existing := map[string]*networkingv1.NetworkPolicy{}
	for i := range list.Items {
		policy := &list.Items[i]
		if existing[policy.Name] = policy; !names.PlatformPolicy(policy.Name) {
			own = append(own, policy)
			delete(existing, policy.Name)
		}
	}
	tenant := translate.NewTenant(vc, "")
	tenant.Key = namespace.Labels[names.Converted] // the cached status may not have it yet
	var failed []error
	for _, want := range p.Pods.ConvertedPolicies(tenant, own) {
		want.Namespace, want.Labels = namespace.Name, names.OwnerLabels(vc)
		failed = append(failed, p.write(ctx, want, existing[want.Name]))
		delete(existing, want.Name)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, policy := range existing {
		if err := client.IgnoreNotFound(p.super.Delete(ctx, policy)); err != nil {
			failed = append(failed, fmt.Errorf("delete NetworkPolicy %s: %w", client.ObjectKeyFromObject(policy), err))
		}
	}
	return errors.Join(failed...)
}

// write creates a policy, or corrects it. One that exists and is not in the cache
// yet is corrected when the cache has it.
func (p *Policies) write(ctx context.Context, want, existing *networkingv1.NetworkPolicy) error {
	var err error
	switch {
	case existing == nil:
		err = client.IgnoreAlreadyExists(p.super.Create(ctx, want, fieldOwner))
	case equality.Semantic.DeepEqual(existing.Spec, want.Spec) && labels.SelectorFromSet(want.Labels).Matches(labels.Set(existing.Labels)):
	default:
		changed := existing.DeepCopy()
		changed.Spec = want.Spec
		maps.Copy(changed.Labels, want.Labels) // there is one by which it is in the cache
		err = p.super.Patch(ctx, changed, client.MergeFrom(existing), fieldOwner)
	}
	if err != nil {
		return fmt.Errorf("write NetworkPolicy %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return nil
}
