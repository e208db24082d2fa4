package resources

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// toldConditions returns the conditions of a copy for the tenant's object:
// without the super cluster's names, and with the generation of the tenant's
// object. The tenant's generation of an older observation is unknown.
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
