package resources

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ResourceClaim is synced down while a pod refers to it, and the allocated
// devices are synced up. A claim is immutable, and is recreated if it differs.
// Claims that were created from a template stay on the side that created them.
func ResourceClaim() kinds.Flow {
	return kinds.Down[*resourcev1.ResourceClaim]{
		Name:     "ResourceClaim",
		Object:   &resourcev1.ResourceClaim{},
		List:     &resourcev1.ResourceClaimList{},
		Summary:  "down, while a pod refers to them; the devices up",
		Optional: true,
		OnDemand: true,
		Admit: func(v kinds.View, tenant *resourcev1.ResourceClaim) error {
			return admitDevices(v, &tenant.Spec)
		},
		Desired: func(_ kinds.View, tenant *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
			return &resourcev1.ResourceClaim{Spec: *tenant.Spec.DeepCopy()}, nil
		},
		Merge:  func(_, _ *resourcev1.ResourceClaim) {},
		Skip:   ofTemplate,
		Status: claimStatus,
		Same:   func(a, b *resourcev1.ResourceClaim) bool { return semanticEqual(a.Status, b.Status) },
	}
}

// podKind is the kind of pods, which use devices.
var podKind = schema.GroupKind{Kind: "Pod"}

// ofTemplate reports whether a claim was created from a template for a pod
// (Kubernetes documentation: Dynamic Resource Allocation).
func ofTemplate(_ kinds.View, claim *resourcev1.ResourceClaim) bool {
	_, made := claim.Annotations["resource.kubernetes.io/pod-claim-name"]
	return made && slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.APIVersion == "v1" && o.Kind == podKind.Kind
	})
}

// admitDevices returns why devices may not be requested.
func admitDevices(v kinds.View, spec *resourcev1.ResourceClaimSpec) error {
	var work expression.Estimate
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if err := admitDeviceRequest(v, request); err != nil {
			return err
		}
		addSelectors(&work, request)
	}
	if work.Work() > expression.MaxWork { // the super cluster compiles them
		return errors.New("the expressions that select its devices are too much work to compile: write fewer or simpler ones")
	}
	return nil
}

func addSelectors(work *expression.Estimate, r *resourcev1.DeviceRequest) {
	var all []resourcev1.DeviceSelector
	if r.Exactly != nil {
		all = append(all, r.Exactly.Selectors...)
	}
	for _, alternative := range r.FirstAvailable {
		all = append(all, alternative.Selectors...)
	}
	for _, selector := range all {
		if selector.CEL != nil {
			work.Add(selector.CEL.Expression)
		}
	}
}

func admitDeviceRequest(v kinds.View, r *resourcev1.DeviceRequest) error {
	if exactly := r.Exactly; exactly != nil {
		if ptr.Deref(exactly.AdminAccess, false) {
			return fmt.Errorf("request %s: adminAccess is not allowed, since it reaches devices that others use", r.Name)
		}
		if err := admitDevice(v, r.Name, exactly.DeviceClassName, exactly.Tolerations); err != nil {
			return err
		}
	}
	for _, alternative := range r.FirstAvailable {
		if err := admitDevice(v, r.Name, alternative.DeviceClassName, alternative.Tolerations); err != nil {
			return err
		}
	}
	return nil
}

// admitDevice rejects a device of a class that is not offered, or a toleration
// that the policy does not allow.
func admitDevice(v kinds.View, request, class string, tolerations []resourcev1.DeviceToleration) error {
	if !v.Offers("DeviceClass", class) {
		return notOffered("the device class of request "+request, "deviceclasses", class)
	}
	return admitDeviceTolerations(v.Tenant.Policy, request, tolerations)
}

// claimStatus shows the tenant the devices, and which of its pods use them. An
// allocation is immutable and has to be removed first: if the copy has other
// devices, the tenant's claim loses its own first.
func claimStatus(v kinds.View, tenant, super *resourcev1.ResourceClaim) {
	was := tenant.Status
	tenant.Status = resourcev1.ResourceClaimStatus{}
	switch {
	case super.Status.Allocation == nil, was.Allocation != nil && !sameDevices(was.Allocation, super.Status.Allocation):
		return
	case was.Allocation != nil:
		tenant.Status.Allocation = was.Allocation
	default:
		tenant.Status.Allocation = shownAllocation(super.Status.Allocation)
	}
	tenant.Status.ReservedFor = consumers(v, tenant, super, was.ReservedFor)
	for _, d := range super.DeepCopy().Status.Devices {
		d.Conditions = toldConditions(v, tenant, super, d.Conditions)
		if d.Data != nil {
			d.Data.Raw = []byte(v.Tenant.Text(string(d.Data.Raw), v.Namespace))
		}
		tenant.Status.Devices = append(tenant.Status.Devices, d)
	}
}

// sameDevices compares the allocated devices. Apiservers of different versions
// may not know all other fields of an allocation.
func sameDevices(a, b *resourcev1.AllocationResult) bool {
	return slices.EqualFunc(a.Devices.Results, b.Devices.Results, func(a, b resourcev1.DeviceRequestAllocationResult) bool {
		return a.Request == b.Request && a.Driver == b.Driver && a.Pool == b.Pool && a.Device == b.Device
	})
}

// shownAllocation returns an allocation without the configuration of the super
// cluster's classes for drivers, and without the nodes that it can be used on,
// which tenants need not know: they see the node of their pod.
func shownAllocation(super *resourcev1.AllocationResult) *resourcev1.AllocationResult {
	shown := super.DeepCopy()
	shown.NodeSelector = nil
	shown.Devices.Config = slices.DeleteFunc(shown.Devices.Config, func(c resourcev1.DeviceAllocationConfiguration) bool {
		return c.Source == resourcev1.AllocationConfigSourceClass
	})
	return shown
}

// consumers returns the tenant's pods for which a claim is reserved. None can
// be added to a claim that is being deleted.
func consumers(
	v kinds.View, tenant, super *resourcev1.ResourceClaim, was []resourcev1.ResourceClaimConsumerReference,
) []resourcev1.ResourceClaimConsumerReference {
	var pods []resourcev1.ResourceClaimConsumerReference
	for _, ref := range super.Status.ReservedFor {
		if ref.APIGroup != "" || ref.Resource != "pods" {
			continue
		}
		key := client.ObjectKey{Namespace: super.Namespace, Name: ref.Name}
		pod, _ := v.Lookup(podKind, key, ref.UID).(*corev1.Pod)
		if pod == nil {
			continue
		}
		shown := resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID}
		if tenant.DeletionTimestamp == nil || slices.Contains(was, shown) {
			pods = append(pods, shown)
		}
	}
	return pods
}
