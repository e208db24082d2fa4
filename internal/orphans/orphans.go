// Package orphans finds and deletes namespaces of tenants whose VirtualClusters
// vanished without their finalizer, such as when an admin has removed it.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// ErrNoOrphan is a namespace that is no orphan, or not the one that was found.
var ErrNoOrphan = errors.New("it is not a namespace of a VirtualCluster that vanished: nothing was deleted")

// Find returns the namespaces of tenants whose VirtualClusters do not exist. It
// reads the VirtualClusters last, so that it does not miss the one of a
// namespace that is created meanwhile.
func Find(ctx context.Context, reader client.Reader) ([]corev1.Namespace, error) {
	namespaces, all := &corev1.NamespaceList{}, &tenancyv1alpha1.VirtualClusterList{}
	if err := reader.List(ctx, namespaces, client.HasLabels{names.VCName, names.VCNamespace}); err != nil {
		return nil, fmt.Errorf("list namespaces of tenants: %w", err)
	}
	if err := reader.List(ctx, all); err != nil {
		return nil, fmt.Errorf("list VirtualClusters: %w", err)
	}
	return Without(namespaces.Items, all.Items), nil
}

// Without returns the namespaces that have the UID of none of the
// VirtualClusters. Namespaces without a UID are no tenant's.
func Without(namespaces []corev1.Namespace, of []tenancyv1alpha1.VirtualCluster) []corev1.Namespace {
	exist := map[string]bool{"": true}
	for i := range of {
		exist[string(of[i].UID)] = true
	}
	return slices.DeleteFunc(slices.Clone(namespaces), func(ns corev1.Namespace) bool { return exist[ns.Annotations[names.VCUID]] })
}

// Owner returns the namespace and the name of the VirtualCluster that a namespace
// was of.
func Owner(namespace *corev1.Namespace) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace.Labels[names.VCNamespace], Name: namespace.Labels[names.VCName]}
}

// Delete deletes a namespace that Find has returned. It reads the namespace and
// the VirtualCluster once more, and deletes the namespace only as it was read.
func Delete(ctx context.Context, c client.Client, found *corev1.Namespace, options ...client.DeleteOption) error {
	now := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKeyFromObject(found), now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get namespace %s: %w", found.Name, err)
	}
	uid := now.Annotations[names.VCUID]
	if now.UID != found.UID || uid == "" || uid != found.Annotations[names.VCUID] || Owner(now) != Owner(found) {
		return ErrNoOrphan
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	err = c.Get(ctx, Owner(now), vc)
	if err == nil && string(vc.UID) == uid {
		return ErrNoOrphan
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get VirtualCluster %s: %w", Owner(now), err)
	}
	options = append(options, client.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion})
	err = c.Delete(ctx, now, options...)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", now.Name, err)
	}
	return nil
}
