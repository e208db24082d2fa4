package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// systemPriorities are the built-in priority classes of critical system pods.
var systemPriorities = []string{"system-cluster-critical", "system-node-critical"}

// priorityClass returns the super cluster's priority class of a pod: the one
// that it names, if the tenant may use it, and none otherwise. A class of the
// tenant only ranks pods of the tenant, which the super cluster does not
// support.
func priorityClass(v kinds.View, name string) string {
	may := v.Tenant.Policy.AllowSystemPriority
	if !slices.Contains(systemPriorities, name) {
		may = name != "" && v.Offers("PriorityClass", name)
	}
	if !may {
		return ""
	}
	return name
}

// admitRuntimeClass rejects a runtime class that the super cluster does not
// offer: with another one, the pod would not run as specified.
func admitRuntimeClass(v kinds.View, spec *corev1.PodSpec) error {
	class := ptr.Deref(spec.RuntimeClassName, "")
	if class == "" || v.Offers("RuntimeClass", class) {
		return nil
	}
	return notOffered("spec.runtimeClassName", "runtimeclasses", class)
}
