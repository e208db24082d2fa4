package controllers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// lacksServiceAccount reports whether a namespace has no default service
// account.
func lacksServiceAccount(ctx context.Context, s *state) (bool, error) {
	return s.any(ctx, "namespaces", func(namespace string, _ []byte) (bool, error) {
		value, err := s.feed.Get(ctx, s.tenant, "serviceaccounts", namespace+"/default")
		return value == nil, err
	})
}

// lacksRootCA reports whether a namespace has no CA bundle, or another one.
func lacksRootCA(ctx context.Context, s *state) (bool, error) {
	return s.any(ctx, "namespaces", func(namespace string, _ []byte) (bool, error) {
		value, err := s.feed.Get(ctx, s.tenant, "configmaps", namespace+"/"+rootcacertpublisher.RootCACertConfigMapName)
		if err != nil || value == nil {
			return true, err
		}
		bundle, err := decode[*corev1.ConfigMap](value)
		return err != nil || len(bundle.Data) != 1 || bundle.Data["ca.crt"] != string(s.authority), err
	})
}

// hasDeletedNamespace reports whether a namespace is being deleted.
func hasDeletedNamespace(ctx context.Context, s *state) (bool, error) {
	return s.anyMetadata(ctx, "namespaces", func(m *metav1.ObjectMeta) bool { return m.DeletionTimestamp != nil })
}

// hasTrackedPods reports whether pods have a finalizer that only the Job
// controller removes. They can be left from Jobs that are gone.
func hasTrackedPods(ctx context.Context, s *state) (bool, error) {
	return s.any(ctx, "pods", func(_ string, value []byte) (bool, error) {
		if !bytes.Contains(value, []byte(batchv1.JobTrackingFinalizer)) {
			return false, nil // without decoding it
		}
		pod, err := views.DecodeMetadata(value)
		return err != nil || slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer), nil //nolint:nilerr // no controller may overlook it
	})
}

// hasDisruptedPods reports whether a pod was to be disrupted and still runs.
// After a while, the disruption controller resets its condition.
func hasDisruptedPods(ctx context.Context, s *state) (bool, error) {
	return s.any(ctx, "pods", func(_ string, value []byte) (bool, error) {
		if !bytes.Contains(value, []byte(corev1.DisruptionTarget)) {
			return false, nil // as nearly all, without decoding it
		}
		pod, err := decode[*corev1.Pod](value)
		if err != nil {
			return true, err
		}
		_, condition := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget)
		return pod.DeletionTimestamp == nil && !podutil.IsPodPhaseTerminal(pod.Status.Phase) && condition != nil &&
			condition.Status == corev1.ConditionTrue && condition.Reason != corev1.PodReasonTerminationByKubelet, nil
	})
}

// hasUncheckedPolicy reports whether a policy does not have the warnings about
// its present expressions.
func hasUncheckedPolicy(ctx context.Context, s *state) (bool, error) {
	return s.any(ctx, "validatingadmissionpolicies", func(_ string, value []byte) (bool, error) {
		policy, err := decode[*admissionregistrationv1.ValidatingAdmissionPolicy](value)
		return err != nil || policy.Status.ObservedGeneration < policy.Generation, err
	})
}

// hasDependents reports whether any of the resources that have changed has
// objects for the garbage collector: with an owner, or deleted with their
// dependents in view. The collector finds dependents whose owner is gone already
// when it starts, but it must run before an owner with dependents is deleted in
// the foreground.
func hasDependents(ctx context.Context, s *state) (bool, error) {
	changed, err := s.resources(ctx)
	if err != nil {
		return true, err
	}
	for _, resource := range changed {
		if resource == eventsResource {
			continue
		}
		found, err := s.anyMetadata(ctx, resource, func(m *metav1.ObjectMeta) bool {
			return len(m.OwnerReferences) > 0 || slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents) ||
				slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents)
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// hasPendingServiceCIDR reports whether a range of Service addresses is not
// ready, or being deleted.
func hasPendingServiceCIDR(ctx context.Context, s *state) (bool, error) {
	return s.any(ctx, "servicecidrs", func(_ string, value []byte) (bool, error) {
		cidr, err := decode[*networkingv1.ServiceCIDR](value)
		if err != nil {
			return true, err
		}
		return cidr.DeletionTimestamp != nil || !meta.IsStatusConditionTrue(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady), nil
	})
}

// hasStaleAggregation reports whether a ClusterRole that aggregates others does
// not have their rules.
func hasStaleAggregation(ctx context.Context, s *state) (bool, error) {
	var roles []*rbacv1.ClusterRole
	_, err := s.any(ctx, "clusterroles", func(_ string, value []byte) (bool, error) {
		role, err := decode[*rbacv1.ClusterRole](value)
		roles = append(roles, role)
		return err != nil, err
	})
	if err != nil {
		return true, err
	}
	slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	for _, role := range roles {
		if stale, err := isStale(role, roles); stale || err != nil {
			return stale, err
		}
	}
	return false, nil
}

// isStale compares the rules of a ClusterRole with those that upstream's
// controller would aggregate.
func isStale(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) (bool, error) {
	if role.AggregationRule == nil {
		return false, nil
	}
	var rules []rbacv1.PolicyRule
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return true, fmt.Errorf("read the selector of ClusterRole %s: %w", role.Name, err)
		}
		for _, other := range all {
			if other.Name == role.Name || !selector.Matches(labels.Set(other.Labels)) {
				continue
			}
			for _, rule := range other.Rules {
				if !slices.ContainsFunc(rules, func(has rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(has, rule) }) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return !equality.Semantic.DeepEqual(rules, role.Rules), nil
}
