package provisioner

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// follow tells when the control plane is ready and when it has ended.
func (h *Hosted) follow(running *hosted.ControlPlane, vc *tenancyv1alpha1.VirtualCluster) {
	select {
	case <-running.Ready():
		h.tell(vc)
	case <-running.Done():
	case <-h.ctx.Done():
		return
	}
	select {
	case <-running.Done():
		h.tell(vc)
	case <-h.ctx.Done():
	}
}

// tell has the VirtualCluster reconciled. It waits for its reader, who may not
// be there yet.
func (h *Hosted) tell(vc *tenancyv1alpha1.VirtualCluster) {
	select {
	case h.events <- event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]{Object: vc}:
	case <-h.ctx.Done():
	}
}

// reference is what of a VirtualCluster it takes to find it.
func reference(vc *tenancyv1alpha1.VirtualCluster) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: vc.Namespace, Name: vc.Name, UID: vc.UID}}
}
