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

// limits are what one tenant may have.
type limits struct {
	hard    corev1.ResourceList
	byClass map[string]corev1.ResourceList // of priority classes
}

// limitsOf are the limits that a VirtualCluster says.
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

// none says whether nothing is limited.
func (l limits) none() bool { return len(l.hard) == 0 && len(l.byClass) == 0 }

// excess says of which resources there would be too much, one text for each; nil if of none. What does not grow is never too much:
// it is there already.
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

// measured are the limits that only what says how much it needs can be held against.
var measured = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
}

// unsaid are the limited resources of which a container of a pod does not say how much it needs. Without that, a pod would take what
// it can get and count for nothing.
func unsaid(hard corev1.ResourceList, spec *corev1.PodSpec) []string {
	var missing []string
	for _, name := range measured {
		if _, limited := hard[name]; limited && !measures(name, spec) {
			missing = append(missing, string(name))
		}
	}
	return missing
}

// measures says whether a pod, or each of its containers, gives a number for what it needs.
func measures(name corev1.ResourceName, spec *corev1.PodSpec) bool {
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

// only are the quantities of what is limited, zeros included.
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
