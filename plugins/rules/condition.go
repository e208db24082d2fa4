package rules

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
)

// fieldOwner is the field manager of the condition RulesValid.
const fieldOwner = client.FieldOwner("vc-syncer-rules")

// maxMessage is the maximum length of the condition's message.
const maxMessage = 4096

// updateCondition writes the condition RulesValid of a VirtualCluster if it
// differs. It returns again if another replica serves the tenant.
func (r *Rules) updateCondition(ctx context.Context, key client.ObjectKey) (again bool, err error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.env.Client.Get(ctx, key, vc); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	want, differs := vcstatus.Merge(vc, map[string]*metav1.Condition{
		tenancyv1alpha1.ConditionRulesValid: conditionOf(vc, r.ownOf(vc)),
	})
	switch {
	case !differs:
		return false, nil
	case !r.env.Serves(vc.Status.ClusterNamespace):
		return true, nil
	}
	return false, vcstatus.ApplyConditions(ctx, r.env.Client, vc, fieldOwner, want...)
}

// conditionOf returns the condition RulesValid; nil if there are no rules.
func conditionOf(vc *tenancyv1alpha1.VirtualCluster, own compiled) *metav1.Condition {
	if own.set == nil {
		return nil
	}
	c := &metav1.Condition{
		Type:               tenancyv1alpha1.ConditionRulesValid,
		Status:             metav1.ConditionTrue,
		Reason:             tenancyv1alpha1.ReasonValid,
		Message:            "All rules can be evaluated",
		ObservedGeneration: vc.Generation,
	}
	if err := own.wrong.ToAggregate(); err != nil {
		c.Status, c.Reason = metav1.ConditionFalse, tenancyv1alpha1.ReasonInvalidExpression
		c.Message = clip(err.Error())
	}
	return c
}

// clip bounds the length of a message, which may quote an expression of any
// length.
func clip(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
}
