package rules

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// fieldOwner is who owns the condition RulesValid.
const fieldOwner = client.FieldOwner("vc-syncer-rules")

// maxMessage is the longest message that is written.
const maxMessage = 4096

// tell writes the condition RulesValid of a VirtualCluster if it differs. It asks for another look where that is another replica's.
func (r *Rules) tell(ctx context.Context, key client.ObjectKey) (again bool, err error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.env.Client.Get(ctx, key, vc); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	want := conditionOf(vc, r.ownOf(vc))
	switch {
	case want == nil && !meta.RemoveStatusCondition(&vc.Status.Conditions, tenancyv1alpha1.ConditionRulesValid):
		return false, nil
	case want != nil && !meta.SetStatusCondition(&vc.Status.Conditions, *want):
		return false, nil
	case !r.env.Serves(vc.Status.ClusterNamespace):
		return true, nil
	}
	is := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionRulesValid)
	part, err := application(vc, is)
	if err != nil {
		return false, err
	}
	apply := client.ApplyConfigurationFromUnstructured(part)
	return false, client.IgnoreNotFound(r.env.Client.Status().Apply(ctx, apply, fieldOwner, client.ForceOwnership))
}

// conditionOf says whether the rules of a VirtualCluster compile; nil where there are none.
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

// clip bounds what an expression of any length does to a status.
func clip(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
}

// application is the part of a VirtualCluster that is the rules'; a condition that is nil is taken away.
func application(vc *tenancyv1alpha1.VirtualCluster, c *metav1.Condition) (*unstructured.Unstructured, error) {
	status := map[string]any{}
	if c != nil {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			return nil, fmt.Errorf("writing a condition of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
		}
		status["conditions"] = []any{content}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"))
	u.SetNamespace(vc.Namespace)
	u.SetName(vc.Name)
	u.SetUID(vc.UID)
	return u, nil
}
