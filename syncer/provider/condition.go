package provider

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// fieldOwner is who owns the condition Syncing: a server-side apply of it leaves the manager's conditions alone.
const fieldOwner = client.FieldOwner("vc-syncer")

// report writes the condition Syncing if it differs.
func (p *Provider) report(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, syncing bool, reason, message string) error {
	p.metrics.stands(client.ObjectKeyFromObject(vc), reason)
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
	apply := client.ApplyConfigurationFromUnstructured(applied(vc, *condition))
	return client.IgnoreNotFound(p.super.Status().Apply(ctx, apply, fieldOwner, client.ForceOwnership))
}

// applied is the part of a VirtualCluster that the syncer owns.
func applied(vc *tenancyv1alpha1.VirtualCluster, c metav1.Condition) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": []any{map[string]any{
			"type":               c.Type,
			"status":             string(c.Status),
			"reason":             c.Reason,
			"message":            c.Message,
			"observedGeneration": c.ObservedGeneration,
			"lastTransitionTime": c.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
		}}},
	}}
	u.SetGroupVersionKind(tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"))
	u.SetNamespace(vc.Namespace)
	u.SetName(vc.Name)
	u.SetUID(vc.UID)
	return u
}

func status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
