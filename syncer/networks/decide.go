package networks

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
)

// maxNetworks is the maximum of networks of a tenant that can be used.
const maxNetworks = 256

// facts are what the state of a network depends on beside itself.
type facts struct {
	// beyond is set for a network beyond maxNetworks.
	beyond bool
	// recalled is set while the API of networks is being deleted.
	recalled bool
	// pods is how many pods use a network that is being deleted, and released is
	// set if no pod can begin to.
	pods     int
	released bool
}

// decision is the state that a network should have.
type decision struct {
	phase           networkv1.Phase
	reason, message string
	// finalizer is set if the network must have the finalizer, and usable if pods
	// can use it.
	finalizer, usable bool
}

// decide returns the state that a network should have.
func decide(n *networkv1.Network, f facts) decision {
	has := hasFinalizer(n)
	pending := func(phase networkv1.Phase, reason, message string) decision {
		return decision{phase: phase, reason: reason, message: message, finalizer: has}
	}
	switch {
	case f.recalled:
		return decision{phase: networkv1.PhaseTerminating, reason: networkv1.ReasonPodsLeft, message: "the API of networks is being deleted"}
	case n.DeletionTimestamp != nil && (f.pods > 0 || !f.released):
		return pending(networkv1.PhaseTerminating, networkv1.ReasonPodsLeft, left(f.pods))
	case n.DeletionTimestamp != nil:
		return decision{phase: networkv1.PhaseTerminating, reason: networkv1.ReasonPodsLeft, message: left(0)}
	case f.beyond:
		return pending(networkv1.PhasePending, networkv1.ReasonTooManyNetworks,
			fmt.Sprintf("no more than the %d oldest networks can be used; delete others", maxNetworks))
	case n.Spec.Type != networkv1.TypeFlat:
		return pending(networkv1.PhasePending, networkv1.ReasonNoProvider,
			fmt.Sprintf("no provider offers networks of type %s; ask an admin of the platform for the types that are offered", n.Spec.Type))
	case n.Spec.Service != nil && len(n.Spec.Service.CIDRs) > 0:
		return pending(networkv1.PhaseFailed, networkv1.ReasonServiceRangesUnsupported,
			"networks of type flat have no ranges of Service addresses of their own; remove spec.service.cidrs")
	}
	return decision{
		phase: networkv1.PhaseReady, reason: networkv1.ReasonReady, message: "pods can use the network", finalizer: true, usable: true,
	}
}

// left returns the message of a network that waits for its pods.
func left(pods int) string {
	switch pods {
	case 0:
		return "the network is being deleted"
	case 1:
		return "the network is deleted when its last pod has ended"
	}
	return fmt.Sprintf("the network is deleted when its %d pods have ended", pods)
}

// status returns the status of a network after a decision.
func (d decision) status(n *networkv1.Network) networkv1.NetworkStatus {
	status := networkv1.NetworkStatus{Phase: d.phase, ObservedGeneration: n.Generation}
	// Conditions of other types are not the platform's.
	if c := meta.FindStatusCondition(n.Status.Conditions, networkv1.ConditionReady); c != nil {
		status.Conditions = []metav1.Condition{*c}
	}
	is := metav1.ConditionFalse
	if d.usable {
		is = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: networkv1.ConditionReady, Status: is, Reason: d.reason, Message: d.message, ObservedGeneration: n.Generation,
	})
	return status
}

// hasFinalizer reports whether a network has the finalizer.
func hasFinalizer(n *networkv1.Network) bool {
	return slices.Contains(n.Finalizers, networkv1.Finalizer)
}

// byAge orders networks: the default one first, then the oldest.
func byAge(networks []networkv1.Network, first string) {
	slices.SortFunc(networks, func(a, b networkv1.Network) int {
		switch {
		case a.Name == first:
			return -1
		case b.Name == first:
			return 1
		}
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}
