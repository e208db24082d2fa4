package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// limits are the limits of one tenant.
type limits struct {
	hard    corev1.ResourceList
	byClass map[string]corev1.ResourceList // by priority class
}

// limitsOf returns the limits in the spec of a VirtualCluster.
func limitsOf(spec *tenancyv1alpha1.QuotaSpec) (limits, error) {
	l := limits{byClass: map[string]corev1.ResourceList{}}
	if spec == nil {
		return l, nil
	}
	var err error
	if l.hard, err = quantities(spec.Hard); err != nil {
		return l, fmt.Errorf("spec.quota.hard: %w", err)
	}
	for _, class := range spec.PriorityClasses {
		if l.byClass[class.Name], err = quantities(class.Hard); err != nil {
			return l, fmt.Errorf("spec.quota.priorityClasses[%s].hard: %w", class.Name, err)
		}
	}
	return l, nil
}

func quantities(of map[corev1.ResourceName]tenancyv1alpha1.Limit) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for name, limit := range of {
		quantity, err := limit.Quantity()
		if err != nil {
			return nil, fmt.Errorf("limit %q of %s: %w", limit, name, err)
		}
		list[name] = quantity
	}
	return list, nil
}

// none reports whether there are no limits.
func (l limits) none() bool { return len(l.hard) == 0 && len(l.byClass) == 0 }

// excess returns a text for each resource whose limit would be exceeded. A
// resource whose usage does not grow is not reported, even if it exceeds a
// limit that was lowered.
func excess(hard, others, was, asked corev1.ResourceList, of string) []string {
	var too []string
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		limit, used, more := hard[name], others[name].DeepCopy(), asked[name]
		if had := was[name]; more.Cmp(had) <= 0 {
			continue
		}
		total := used.DeepCopy()
		total.Add(more)
		if total.Cmp(limit) > 0 {
			too = append(too, fmt.Sprintf("%s%s: used %s, asked %s, hard %s", name, of, &used, &more, &limit))
		}
	}
	return too
}

// measured are the limits that require each container to declare the resource.
var measured = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
}

// undeclared returns the limited resources that a container of a pod does not
// declare. Such a container could use any amount and would count for nothing.
func undeclared(hard corev1.ResourceList, spec *corev1.PodSpec) []string {
	var missing []string
	for _, name := range measured {
		if _, limited := hard[name]; limited && !declares(name, spec) {
			missing = append(missing, string(name))
		}
	}
	return missing
}

// declares reports whether a pod, or each of its containers, declares a
// quantity for a resource.
func declares(name corev1.ResourceName, spec *corev1.PodSpec) bool {
	list := func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests }
	if strings.HasPrefix(string(name), "limits.") {
		list = func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits }
	}
	_, short, dotted := strings.Cut(string(name), ".")
	if !dotted {
		short = string(name)
	}
	has := func(r corev1.ResourceRequirements) bool {
		_, said := list(r)[corev1.ResourceName(short)]
		return said
	}
	if spec.Resources != nil && has(*spec.Resources) {
		return true
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		if slices.ContainsFunc(containers, func(c corev1.Container) bool { return !has(c.Resources) }) {
			return false
		}
	}
	return true
}

// only returns the quantities of the limited resources, including zeros.
func only(used, hard corev1.ResourceList) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, limit := range hard {
		quantity, there := used[name]
		if !there {
			quantity = *resource.NewQuantity(0, limit.Format)
		}
		list[name] = quantity
	}
	return list
}
