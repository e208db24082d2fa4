package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// kind is a counted kind.
type kind struct {
	object client.Object
	// count is the name of the number of its objects.
	count corev1.ResourceName
	// usage returns what one object uses beside that; nil for nothing.
	usage func(obj client.Object, now time.Time) corev1.ResourceList
}

// countedKind returns how a kind is counted: by the number of its objects and,
// for some core kinds, by what the objects use.
func countedKind(k plugins.Kind) kind {
	counted := kind{object: k.Object, count: corev1.ResourceName("count/" + k.Resource.String())}
	if k.Group == corev1.GroupName {
		counted.usage = usages()[k.Kind]
	}
	return counted
}

// usages returns what objects of core kinds use beside their number.
func usages() map[string]func(client.Object, time.Time) corev1.ResourceList {
	return map[string]func(client.Object, time.Time) corev1.ResourceList{
		"Pod":                   podUsage,
		"PersistentVolumeClaim": claimUsage,
		"Service":               serviceUsage,
		"ConfigMap":             always(corev1.ResourceConfigMaps),
		"Secret":                always(corev1.ResourceSecrets),
	}
}

// plain returns the resources that are counted whatever classes and devices
// there are.
func (q *Quota) plain() []corev1.ResourceName {
	counts := make([]corev1.ResourceName, 0, len(q.kinds))
	for _, k := range q.kinds {
		counts = append(counts, k.count)
	}
	return append(counts,
		corev1.ResourcePods, corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage, corev1.ResourceServices,
		corev1.ResourceServicesLoadBalancers, corev1.ResourceServicesNodePorts, corev1.ResourceConfigMaps, corev1.ResourceSecrets,
		corev1.ResourceCPU, corev1.ResourceRequestsCPU, corev1.ResourceLimitsCPU,
		corev1.ResourceMemory, corev1.ResourceRequestsMemory, corev1.ResourceLimitsMemory,
		corev1.ResourceEphemeralStorage, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsEphemeralStorage,
	)
}

// usageOf returns all that one object uses.
func (k kind) usageOf(obj client.Object, now time.Time) corev1.ResourceList {
	used := corev1.ResourceList{}
	if k.usage != nil {
		used = k.usage(obj, now)
	}
	used[k.count] = one()
	return used
}

func one() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }

func always(name corev1.ResourceName) func(client.Object, time.Time) corev1.ResourceList {
	return func(client.Object, time.Time) corev1.ResourceList { return corev1.ResourceList{name: one()} }
}

// podUsage returns what a pod uses until it has ended: the most that its
// containers need at a time, with its overhead. While it is resized, it uses
// the larger of the current and the desired resources.
func podUsage(obj client.Object, now time.Time) corev1.ResourceList {
	pod := obj.(*corev1.Pod)
	if !holdsResources(pod, now) {
		return corev1.ResourceList{}
	}
	used := corev1.ResourceList{corev1.ResourcePods: one()}
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	for name, quantity := range resourcehelper.PodRequests(pod, options) {
		switch {
		case isBasic(name), strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			used[name] = quantity
			used[corev1.DefaultResourceRequestsPrefix+name] = quantity
		case strings.Contains(string(name), "/"):
			used[corev1.DefaultResourceRequestsPrefix+name] = quantity
		}
	}
	for name, quantity := range resourcehelper.PodLimits(pod, options) {
		if isBasic(name) {
			used["limits."+name] = quantity
		}
	}
	return used
}

// isBasic reports whether every node has a resource.
func isBasic(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// holdsResources reports whether a pod has not ended and its grace period has
// not expired.
func holdsResources(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	end := endOf(pod)
	return end.IsZero() || !now.After(end)
}

// endOf returns the end of the grace period of an object that is being deleted,
// after which it holds nothing even if its node does not respond; otherwise
// zero.
func endOf(obj client.Object) time.Time {
	deleted, grace := obj.GetDeletionTimestamp(), obj.GetDeletionGracePeriodSeconds()
	if deleted == nil || grace == nil {
		return time.Time{}
	}
	return deleted.Add(time.Duration(*grace) * time.Second)
}

// claimUsage returns what a claim uses: its request or, while it is expanded,
// the larger allocated size.
func claimUsage(obj client.Object, _ time.Time) corev1.ResourceList {
	claim := obj.(*corev1.PersistentVolumeClaim)
	used := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: one()}
	storage := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if promised := claim.Status.AllocatedResources[corev1.ResourceStorage]; promised.Cmp(storage) > 0 {
		storage = promised
	}
	used[corev1.ResourceRequestsStorage] = storage
	if class := claim.Spec.StorageClassName; class != nil && *class != "" {
		of := corev1.ResourceName(*class + ".storageclass.storage.k8s.io/")
		used[of+corev1.ResourceRequestsStorage] = storage
		used[of+corev1.ResourcePersistentVolumeClaims] = one()
	}
	return used
}

// serviceUsage counts a service, its load balancer, and its node ports.
func serviceUsage(obj client.Object, _ time.Time) corev1.ResourceList {
	service := obj.(*corev1.Service)
	used := corev1.ResourceList{corev1.ResourceServices: one()}
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		used[corev1.ResourceServicesLoadBalancers] = one()
	}
	if ports := nodePorts(&service.Spec); ports > 0 {
		used[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(ports, resource.DecimalSI)
	}
	return used
}

// nodePorts returns the number of node ports of a service: one for each port
// or, if it disables their allocation, those that it names.
func nodePorts(spec *corev1.ServiceSpec) int64 {
	switch {
	case spec.Type != corev1.ServiceTypeNodePort && spec.Type != corev1.ServiceTypeLoadBalancer:
		return 0
	case spec.Type == corev1.ServiceTypeNodePort, ptr.Deref(spec.AllocateLoadBalancerNodePorts, true):
		return int64(len(spec.Ports))
	}
	named := int64(0)
	for _, port := range spec.Ports {
		if port.NodePort != 0 {
			named++
		}
	}
	return named
}

// classOf returns the priority class of a pod; empty for other objects.
func classOf(obj client.Object) string {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod.Spec.PriorityClassName
	}
	return ""
}
