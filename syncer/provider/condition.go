package provider

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
)

// fieldOwner is the field manager of the condition Syncing, so that a
// server-side apply does not affect the conditions of vc-manager.
const fieldOwner = client.FieldOwner("vc-syncer")

// report writes the condition Syncing if it differs.
func (p *Provider) report(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, syncing bool, reason, message string) error {
	p.metrics.observe(client.ObjectKeyFromObject(vc), reason)
	conditions := vc.DeepCopy().Status.Conditions
	want := metav1.Condition{
		Type:               tenancyv1alpha1.ConditionSyncing,
		Status:             status(syncing),
		Reason:             reason,
		Message:            message,
		ObservedGeneration: vc.Generation,
	}
	if !meta.SetStatusCondition(&conditions, want) {
		return nil
	}
	condition := meta.FindStatusCondition(conditions, want.Type)
	return vcstatus.ApplyCondition(ctx, p.super, vc, fieldOwner, condition)
}

func status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
