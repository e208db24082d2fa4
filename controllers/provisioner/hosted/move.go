package hosted

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=hostedcontrolplanes,verbs=patch

// storeOf returns the store that a VirtualCluster asks for; empty for any.
func storeOf(vc *tenancyv1alpha1.VirtualCluster) string {
	if vc.Spec.ControlPlane == nil {
		return ""
	}
	return vc.Spec.ControlPlane.Store
}

// move has vc-host move the data of a control plane to the store that its
// VirtualCluster asks for, if that takes it, and returns how far that is.
func (p *Provisioner) move(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, plane *tenancyv1alpha1.HostedControlPlane,
) (*provisioner.Move, error) {
	want := storeOf(vc)
	// Until vc-host has reported where the data is, the spec says it.
	if want == "" || want == plane.Spec.Store || plane.Status.Store == "" {
		return moveOf(want, plane), nil
	}
	if want == plane.DataStore() { // back is always possible
		p.placed.forget(vc.UID)
	} else {
		why, err := p.rejects(ctx, vc.UID, want)
		if err != nil {
			return nil, err
		}
		if why != "" {
			p.placed.waitForStore(vc)
			return &provisioner.Move{Reason: tenancyv1alpha1.ReasonNoStore, Message: fmt.Sprintf(
				"ControlPlaneStore %s %s: the data stays in %s", want, why, plane.DataStore())}, nil
		}
	}
	before := plane.DeepCopy()
	changed := plane.DeepCopy()
	changed.Spec.Store = want
	err := p.client.Patch(ctx, changed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	if err != nil {
		p.placed.forget(vc.UID)
		return nil, fmt.Errorf("write the store of HostedControlPlane %s: %w", client.ObjectKeyFromObject(plane), err)
	}
	return moveOf(want, changed), nil
}

// rejects returns why a store takes no further control plane; empty if it takes
// this one, which is counted there from then on.
func (p *Provisioner) rejects(ctx context.Context, vc types.UID, name string) (why string, err error) {
	p.placed.Lock()
	defer p.placed.Unlock()
	stores, placed, err := p.lockedStores(ctx)
	if err != nil {
		return "", err
	}
	for i := range stores {
		if stores[i].Name != name {
			continue
		}
		if why = obstacle(&stores[i], placed[name]); why == "" {
			p.placed.add(vc, name)
		}
		return why, nil
	}
	return "does not exist", nil
}

// moveOf returns how far the move to a store is; nil if there was none. An empty
// name stands for the store that the control plane has.
func moveOf(want string, plane *tenancyv1alpha1.HostedControlPlane) *provisioner.Move {
	reported := meta.FindStatusCondition(plane.Status.Conditions, tenancyv1alpha1.ConditionMoved)
	if want == "" && reported == nil {
		return nil
	}
	want = cmp.Or(want, plane.Spec.Store)
	at := plane.DataStore()
	switch {
	case at == want && plane.Spec.Store == want && plane.Status.Move == nil:
		return &provisioner.Move{Done: true, Reason: tenancyv1alpha1.ReasonMoved, Message: "The data is in ControlPlaneStore " + want}
	case plane.Spec.Store == want && reported != nil && reported.Status == metav1.ConditionFalse:
		return &provisioner.Move{Reason: reported.Reason, Message: reported.Message}
	default:
		return &provisioner.Move{Reason: tenancyv1alpha1.ReasonMoving, Message: fmt.Sprintf(
			"Waiting for vc-host to move the data from ControlPlaneStore %s to %s", at, want)}
	}
}
