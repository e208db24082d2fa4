package resources

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// resizable are the resources that can be changed in a running pod (Pod
// validation).
var resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// mergeResources merges the resources of a tenant's pod, if its spec has
// changed since its creation. Until then, and for resources that it does not
// declare, the values of the super cluster's admission stay.
func mergeResources(_ kinds.View, super, tenant *corev1.Pod) {
	if tenant.Generation <= 1 {
		return
	}
	resizeContainers(super.Spec.InitContainers, tenant.Spec.InitContainers)
	resizeContainers(super.Spec.Containers, tenant.Spec.Containers)
	resizePod(&super.Spec, &tenant.Spec)
}

// resizePod merges the resources at pod level.
func resizePod(super, tenant *corev1.PodSpec) {
	if tenant.Resources == nil || len(tenant.Resources.Requests)+len(tenant.Resources.Limits) == 0 {
		return
	}
	if super.Resources == nil {
		super.Resources = &corev1.ResourceRequirements{}
	}
	resize(super.Resources, tenant.Resources)
}

func resizeContainers(super, tenant []corev1.Container) {
	stated := make(map[string]*corev1.ResourceRequirements, len(tenant))
	for i := range tenant {
		stated[tenant[i].Name] = &tenant[i].Resources
	}
	for i := range super {
		if r := stated[super[i].Name]; r != nil {
			resize(&super[i].Resources, r)
		}
	}
}

func resize(super, tenant *corev1.ResourceRequirements) {
	super.Requests = resized(super.Requests, tenant.Requests)
	super.Limits = resized(super.Limits, tenant.Limits)
}

// resized returns the copy's list with the tenant's resizable resources. Equal
// quantities keep their format.
func resized(super, tenant corev1.ResourceList) corev1.ResourceList {
	for _, name := range resizable {
		want, stated := tenant[name]
		if have, there := super[name]; !stated || there && have.Cmp(want) == 0 {
			continue
		}
		if super == nil {
			super = corev1.ResourceList{}
		}
		super[name] = want.DeepCopy()
	}
	return super
}
