package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

type applyLabelSelector = applymetav1.LabelSelectorApplyConfiguration

// exist returns the selector of what has labels.
func exist(labels ...string) *applyLabelSelector {
	selector := applymetav1.LabelSelector()
	for _, label := range labels {
		selector.WithMatchExpressions(applymetav1.LabelSelectorRequirement().WithKey(label).WithOperator(metav1.LabelSelectorOpExists))
	}
	return selector
}
