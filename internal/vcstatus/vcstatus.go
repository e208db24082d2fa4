// Package vcstatus writes the parts of a VirtualCluster's status that different
// owners have, each without touching the others'.
package vcstatus

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Merge returns the conditions of an owner, by type, with the times of their
// last transitions, and reports whether the status has others. A nil condition
// should not exist.
func Merge(vc *tenancyv1alpha1.VirtualCluster, wanted map[string]*metav1.Condition) (merged []*metav1.Condition, differ bool) {
	all := slices.Clone(vc.Status.Conditions)
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		if want := wanted[kind]; want == nil {
			differ = meta.RemoveStatusCondition(&all, kind) || differ
		} else {
			differ = meta.SetStatusCondition(&all, *want) || differ
			merged = append(merged, meta.FindStatusCondition(all, kind))
		}
	}
	return merged, differ
}

// ApplyConditions applies the conditions that an owner has by server-side apply,
// and deletes those that it had and that are not among them. A VirtualCluster
// that is gone is no error.
func ApplyConditions(
	ctx context.Context, c client.Client, vc *tenancyv1alpha1.VirtualCluster, owner client.FieldOwner, all ...*metav1.Condition,
) error {
	part, err := conditions(vc, all)
	if err != nil {
		return err
	}
	return apply(ctx, c, vc, owner, part)
}

// ApplyQuota applies the usage of the quota by server-side apply; nil deletes
// it. A VirtualCluster that is gone is no error.
func ApplyQuota(
	ctx context.Context, c client.Client, vc *tenancyv1alpha1.VirtualCluster, owner client.FieldOwner, quota *tenancyv1alpha1.QuotaStatus,
) error {
	part := map[string]any{}
	if quota != nil {
		content, err := encode(vc, quota)
		if err != nil {
			return err
		}
		part["quota"] = content
	}
	return apply(ctx, c, vc, owner, part)
}

// encode returns a part of the status as the API has it.
func encode(vc *tenancyv1alpha1.VirtualCluster, part any) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(part)
	if err != nil {
		return nil, fmt.Errorf("encode the status of VirtualCluster %s: %w", client.ObjectKeyFromObject(vc), err)
	}
	return content, nil
}

// apply applies what an owner has of the status.
func apply(
	ctx context.Context, c client.Client, vc *tenancyv1alpha1.VirtualCluster, owner client.FieldOwner, status map[string]any,
) error {
	part := client.ApplyConfigurationFromUnstructured(partOf(vc, status))
	return client.IgnoreNotFound(c.Status().Apply(ctx, part, owner, client.ForceOwnership))
}

// partOf returns a part of this VirtualCluster, and not of a later one of its
// name.
func partOf(vc *tenancyv1alpha1.VirtualCluster, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"))
	u.SetNamespace(vc.Namespace)
	u.SetName(vc.Name)
	u.SetUID(vc.UID)
	return u
}

// conditions returns the part of the status with these conditions; empty without
// any.
func conditions(vc *tenancyv1alpha1.VirtualCluster, all []*metav1.Condition) (map[string]any, error) {
	var contents []any
	for _, condition := range all {
		content, err := encode(vc, condition)
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	if len(contents) == 0 {
		return map[string]any{}, nil
	}
	return map[string]any{"conditions": contents}, nil
}
