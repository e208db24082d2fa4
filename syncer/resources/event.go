package resources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// kubelet is the source of events whose host is the node of a pod, which the tenant may know. Of others it is the machine of a
// component of the super cluster.
const kubelet = "kubelet"

// Event is shown to the tenant if it is about a copy of one of its objects, as if it were about the object itself. It expires
// in the tenant by itself.
func Event() kinds.Flow {
	return kinds.Up[*corev1.Event]{
		Name:    "Event",
		Object:  &corev1.Event{},
		List:    &corev1.EventList{},
		Expires: true,
		Desired: tenantEvent,
		Merge: func(tenant, desired *corev1.Event) {
			meta := tenant.ObjectMeta
			*tenant = *desired
			tenant.ObjectMeta = meta
		},
	}
}

func tenantEvent(v kinds.View, super *corev1.Event) *corev1.Event {
	about := super.InvolvedObject
	obj := v.Lookup(about.GroupVersionKind().GroupKind(), client.ObjectKey{Namespace: about.Namespace, Name: about.Name}, about.UID)
	if obj == nil || obj.GetNamespace() != v.Namespace {
		// It is about an object of the super cluster's own, or one that is gone; or it does not lie in the namespace of what it
		// is about, where the apiserver wants it.
		return nil
	}
	event := super.DeepCopy()
	event.ObjectMeta = metav1.ObjectMeta{Namespace: v.Namespace, Name: super.Name}
	event.InvolvedObject.Namespace = obj.GetNamespace()
	event.InvolvedObject.Name = obj.GetName()
	event.InvolvedObject.UID = obj.GetUID()
	event.InvolvedObject.ResourceVersion = ""
	// A second object could be anything of the super cluster.
	event.Related = nil
	// The instance is the host of a component of the super cluster, or one of its pods.
	event.ReportingInstance = event.ReportingController
	if event.Source.Component != kubelet {
		event.Source.Host = ""
	}
	event.Message = v.Tenant.Text(super.Message, v.Namespace)
	event.Action = v.Tenant.Text(super.Action, v.Namespace)
	return event
}
