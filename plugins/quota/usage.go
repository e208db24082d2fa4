package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A kind is what of a tenant's is counted, and how.
type kind struct {
	object client.Object
	// count is the name of the number of its objects.
	count corev1.ResourceName
	// usage is what one object takes beside that; nil for nothing.
	usage func(obj client.Object, now time.Time) corev1.ResourceList
}

// kinds are all that are counted.
func kinds() []kind {
	return []kind{
		{&corev1.Pod{}, "count/pods", podUsage},
		{&corev1.PersistentVolumeClaim{}, "count/persistentvolumeclaims", claimUsage},
		{&corev1.Service{}, "count/services", serviceUsage},
		{metadataOf("ConfigMap"), "count/configmaps", always(corev1.ResourceConfigMaps)},
		{metadataOf("Secret"), "count/secrets", always(corev1.ResourceSecrets)},
		{&corev1.ServiceAccount{}, "count/serviceaccounts", nil},
		{&corev1.Namespace{}, "count/namespaces", nil},
		{&networkingv1.Ingress{}, "count/ingresses.networking.k8s.io", nil},
		{&networkingv1.NetworkPolicy{}, "count/networkpolicies.networking.k8s.io", nil},
		{&policyv1.PodDisruptionBudget{}, "count/poddisruptionbudgets.policy", nil},
		{&corev1.Endpoints{}, "count/endpoints", nil}, //nolint:staticcheck // deprecated, and old clients still write them
		{&discoveryv1.EndpointSlice{}, "count/endpointslices.discovery.k8s.io", nil},
		{&resourcev1.ResourceClaim{}, "count/resourceclaims.resource.k8s.io", nil},
		{&resourcev1.ResourceClaimTemplate{}, "count/resourceclaimtemplates.resource.k8s.io", nil},
	}
}

// metadataOf returns an empty object of a core kind whose objects are counted by their metadata: the cache does not hold their contents.
func metadataOf(kind string) client.Object {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: kind}}
}

// plain are the resources that are counted whatever classes and devices there are.
func plain() []corev1.ResourceName {
	counts := make([]corev1.ResourceName, 0, len(kinds()))
	for _, k := range kinds() {
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

// usageOf is all that one object takes.
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

// podUsage is what a pod takes while it runs or may come to run: the most that its containers need at a time, with its overhead, and
// while it is resized the more of what it has and what it is to have.
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

// isBasic says whether every node has a resource.
func isBasic(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// holdsResources says whether a pod has not ended, and should not have.
func holdsResources(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	end := endOf(pod)
	return end.IsZero() || !now.After(end)
}

// endOf is when an object that is being deleted holds nothing any more, even if its node does not answer; zero if it is not.
func endOf(obj client.Object) time.Time {
	deleted, grace := obj.GetDeletionTimestamp(), obj.GetDeletionGracePeriodSeconds()
	if deleted == nil || grace == nil {
		return time.Time{}
	}
	return deleted.Add(time.Duration(*grace) * time.Second)
}

// claimUsage is what a claim takes: what it asks for or, while it grows, what it has been promised.
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

// serviceUsage counts a service, its load balancer, and the ports that it takes of every node.
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

// nodePorts is how many ports of every node a service takes: all of its own, unless it asks for none; then those that it names.
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

// classOf is the priority class of a pod; empty for what has none.
func classOf(obj client.Object) string {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod.Spec.PriorityClassName
	}
	return ""
}
