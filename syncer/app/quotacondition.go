package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
	"github.com/virtualcluster/virtualcluster/plugins/quota"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// quotaOwner is the field manager of the condition QuotaEnforced.
const quotaOwner = client.FieldOwner("vc-syncer-quota-enforced")

// quotaReporter writes the condition QuotaEnforced of VirtualClusters with a
// quota, so that admins can distinguish an enforced quota from one that is
// ignored.
type quotaReporter struct {
	client client.Client
	// validators are the IDs of the enabled validators; nil if validation is
	// disabled.
	validators sets.Set[string]
	// converted is set if they are called for tenants without a control plane.
	converted bool
}

// addQuotaReporter adds a reporter for the validators of a gate to the manager;
// gate is nil if validation is disabled.
func addQuotaReporter(mgr manager.Manager, gate *validation.Gate, converted bool) error {
	r := &quotaReporter{client: mgr.GetClient(), converted: converted}
	if gate != nil {
		r.validators = sets.New[string]()
		for _, v := range gate.Validators() {
			r.validators.Insert(v.Name())
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("quota-condition").
		// Replicas with different flags, as during a rollout, must not
		// overwrite each other.
		For(&tenancyv1alpha1.VirtualCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the condition %s: %w", tenancyv1alpha1.ConditionQuotaEnforced, err)
	}
	return nil
}

// Reconcile writes the condition of one VirtualCluster if it differs.
func (r *quotaReporter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.client.Get(ctx, req.NamespacedName, vc); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !vc.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	var stale error
	if vc.Status.Quota != nil && !r.validators.Has(quota.ID) {
		stale = quota.ClearStatus(ctx, r.client, vc)
	}
	return reconcile.Result{}, errors.Join(stale, r.report(ctx, vc))
}

// report applies the condition, or removes it.
func (r *quotaReporter) report(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	want, differs := vcstatus.Merge(vc, map[string]*metav1.Condition{
		tenancyv1alpha1.ConditionQuotaEnforced: quotaEnforced(vc, r.validators, r.converted),
	})
	if !differs {
		return nil
	}
	return vcstatus.ApplyConditions(ctx, r.client, vc, quotaOwner, want...)
}

// quotaEnforced returns the condition of a VirtualCluster; nil without a quota.
func quotaEnforced(vc *tenancyv1alpha1.VirtualCluster, validators sets.Set[string], converted bool) *metav1.Condition {
	parts := quotaParts(vc.Spec.Quota)
	if len(parts) == 0 {
		return nil
	}
	condition := &metav1.Condition{
		Type:               tenancyv1alpha1.ConditionQuotaEnforced,
		Status:             metav1.ConditionTrue,
		Reason:             tenancyv1alpha1.ReasonEnforced,
		Message:            "vc-syncer enforces spec.quota",
		ObservedGeneration: vc.Generation,
	}
	var missing []string
	for _, part := range parts {
		if !validators.Has(part.validator) {
			missing = append(missing, fmt.Sprintf("%s, since its flag --quota-validators leaves out %s", part.field, part.validator))
		}
	}
	switch {
	case validators == nil:
		condition.Message = "vc-syncer does not enforce spec.quota, since it runs without --enable-quota-validation"
	case vc.Spec.Provisioner == tenancyv1alpha1.ProvisionerConverted && !converted:
		condition.Message = "vc-syncer does not enforce spec.quota of converted tenants, since it runs without --converted-webhook-service"
	case len(missing) > 0:
		condition.Message = "vc-syncer does not enforce " + strings.Join(missing, "; nor ")
	default:
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionFalse, tenancyv1alpha1.ReasonValidationDisabled
	return condition
}

// quotaPart is a part of a quota and the ID of the validator that enforces it.
type quotaPart struct{ field, validator string }

// quotaParts returns the parts of a quota.
func quotaParts(q *tenancyv1alpha1.QuotaSpec) (parts []quotaPart) {
	if q == nil {
		return nil
	}
	if len(q.Hard) > 0 {
		parts = append(parts, quotaPart{"spec.quota.hard", quota.ID})
	}
	if len(q.PriorityClasses) > 0 {
		parts = append(parts, quotaPart{"spec.quota.priorityClasses", quota.ID})
	}
	if len(q.Rules) > 0 {
		parts = append(parts, quotaPart{"spec.quota.rules", rules.ID})
	}
	return parts
}
