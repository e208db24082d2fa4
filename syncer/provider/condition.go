package provider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
)

// fieldOwner owns the conditions Syncing and Synced: a server-side apply of them
// leaves the manager's conditions alone.
const fieldOwner = client.FieldOwner("vc-syncer")

// report applies the conditions of a tenant whose objects are not synced, which
// makes it unknown whether all are, if they differ.
func (p *Provider) report(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, why problem) error {
	p.metrics.observe(client.ObjectKeyFromObject(vc), why.reason)
	return p.apply(ctx, vc, []metav1.Condition{
		{Type: tenancyv1alpha1.ConditionSyncing, Status: metav1.ConditionFalse, Reason: why.reason, Message: why.message},
		{
			Type: tenancyv1alpha1.ConditionSynced, Status: metav1.ConditionUnknown, Reason: why.reason,
			Message: "The tenant's objects are not synced for now",
		},
	})
}

// reportSyncing applies the conditions of a tenant whose objects are synced, if
// they differ.
func (p *Provider) reportSyncing(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, c *Cluster) error {
	p.metrics.observe(client.ObjectKeyFromObject(vc), tenancyv1alpha1.ReasonReady)
	message := "The tenant's objects are synced"
	if not := c.problems.String(); not != "" {
		message += ", but not all: " + not
	}
	return p.apply(ctx, vc, []metav1.Condition{
		{Type: tenancyv1alpha1.ConditionSyncing, Status: metav1.ConditionTrue, Reason: tenancyv1alpha1.ReasonReady, Message: message},
		syncedCondition(c.pendingSummary()),
	})
}

// syncedCondition returns the condition Synced for a summary of what is pending.
func syncedCondition(summary string) metav1.Condition {
	if summary == "" {
		return metav1.Condition{
			Type: tenancyv1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: tenancyv1alpha1.ReasonNothingPending,
			Message: "No object has been pending for long",
		}
	}
	return metav1.Condition{
		Type: tenancyv1alpha1.ConditionSynced, Status: metav1.ConditionFalse, Reason: tenancyv1alpha1.ReasonObjectsPending,
		Message: summary,
	}
}

// apply applies conditions if one of them differs.
func (p *Provider) apply(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, conditions []metav1.Condition) error {
	wanted := map[string]*metav1.Condition{}
	for i := range conditions {
		conditions[i].ObservedGeneration = vc.Generation
		wanted[conditions[i].Type] = &conditions[i]
	}
	merged, differ := vcstatus.Merge(vc, wanted)
	if !differ {
		return nil
	}
	return vcstatus.ApplyConditions(ctx, p.super, vc, fieldOwner, merged...)
}
