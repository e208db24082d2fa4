package virtualcluster

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/alias"
)

// aliasState is whether a VirtualCluster has the alias of its spec. The zero
// value is unknown.
type aliasState int

const (
	aliasHeld aliasState = iota + 1
	aliasTaken
)

// findAlias returns whether the VirtualCluster has its alias.
func (r *Reconciler) findAlias(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (aliasState, error) {
	if vc.Spec.Alias == "" {
		return 0, nil
	}
	holder, err := alias.Holder(ctx, r.Live, vc.Spec.Alias)
	switch {
	case err != nil || holder == nil:
		return 0, err
	case holder.UID == vc.UID:
		return aliasHeld, nil
	default:
		return aliasTaken, nil
	}
}

// setAlias writes whether the VirtualCluster has its alias. The message does not
// name the holder, which may be in a namespace that the reader cannot see.
func setAlias(conditions *[]metav1.Condition, vc *tenancyv1alpha1.VirtualCluster, state aliasState) {
	const kind = tenancyv1alpha1.ConditionAliasHeld
	switch {
	case vc.Spec.Alias == "":
		meta.RemoveStatusCondition(conditions, kind)
	case state == aliasHeld:
		held := verdict{"", metav1.ConditionTrue, tenancyv1alpha1.ReasonAliasHeld, "The gateway finds the tenant by its alias"}
		held.set(conditions, kind, vc.Generation)
	case state == aliasTaken:
		taken := verdict{"", metav1.ConditionFalse, tenancyv1alpha1.ReasonAliasTaken, "An older VirtualCluster has the alias. " +
			"The tenant is found by its cluster key; create the VirtualCluster again with another alias"}
		taken.set(conditions, kind, vc.Generation)
	}
}

// sameAlias returns the VirtualClusters with the alias of one that is created or
// deleted.
func (r *Reconciler) sameAlias(ctx context.Context, object client.Object) []reconcile.Request {
	values := alias.Of(object)
	if len(values) == 0 {
		return nil
	}
	all, err := alias.List(ctx, r.Live, values[0])
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot reconcile the VirtualClusters with the alias of another one")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(all))
	for i := range all {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
	}
	return requests
}

// changesHolders selects the events after which another VirtualCluster can have
// an alias.
func changesHolders() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return len(alias.Of(e.ObjectOld)) != len(alias.Of(e.ObjectNew)) },
	})
}
