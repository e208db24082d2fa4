package converted

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestIsOnlyBindings: the texts are those of the namespace controller.
func TestIsOnlyBindings(t *testing.T) {
	const (
		bindings = "rolebindings.rbac.authorization.k8s.io has 1 resource instances"
		text     = "Some resources are remaining: "
	)
	remaining := func(message string) []corev1.NamespaceCondition {
		return []corev1.NamespaceCondition{
			{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionFalse, Message: "All resources successfully discovered"},
			{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: message},
		}
	}
	for name, c := range map[string]struct {
		conditions []corev1.NamespaceCondition
		want       bool
	}{
		"not looked yet":         {nil, false},
		"looked for pods first":  {remaining(text + "pods. has 2 resource instances"), false},
		"a ConfigMap":            {remaining(text + "configmaps. has 1 resource instances, " + bindings), false},
		"after the bindings":     {remaining(text + bindings + ", secrets. has 12 resource instances"), false},
		"the bindings alone":     {remaining(text + bindings), true},
		"nothing":                {remaining("All content successfully removed"), true},
		"a text that is unknown": {remaining("12 things"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOnlyBindings(c.conditions); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
