package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// systemPriorities are the priority classes that every cluster has, for what it cannot do without.
var systemPriorities = []string{"system-cluster-critical", "system-node-critical"}

// priorityClass is the class of the super cluster that a pod gets: the one that it names, if the tenant may have it, and none
// otherwise. A class of the tenant's own ranks pods among the tenant's alone, which the super cluster does not do.
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

// admitRuntimeClass makes sure that the super cluster offers the runtime that a pod names: with another one it would not be
// what it says it is.
func admitRuntimeClass(v kinds.View, spec *corev1.PodSpec) error {
	class := ptr.Deref(spec.RuntimeClassName, "")
	if class == "" || v.Offers("RuntimeClass", class) {
		return nil
	}
	return notOffered("spec.runtimeClassName", "runtimeclasses", class)
}
