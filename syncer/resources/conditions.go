package resources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// toldConditions are conditions of a copy as they are told of the tenant's object: without the super cluster's names, and in the
// tenant's count of generations. Of which generation an older observation was is not known there.
func toldConditions(v kinds.View, tenant, super client.Object, conditions []metav1.Condition) []metav1.Condition {
	if len(conditions) == 0 {
		return nil
	}
	told := make([]metav1.Condition, len(conditions))
	for i, c := range conditions {
		c.Message = v.Tenant.Text(c.Message, v.Namespace)
		if c.ObservedGeneration == super.GetGeneration() {
			c.ObservedGeneration = tenant.GetGeneration()
		} else {
			c.ObservedGeneration = 0
		}
		told[i] = c
	}
	return told
}
