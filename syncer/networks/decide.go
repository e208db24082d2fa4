package networks

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
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
	// provided is what is known of the network at its provider.
	provided provided
	// ranged is what is known of its ranges of Service addresses.
	ranged ranged
}

// decision is the state that a network should have.
type decision struct {
	phase           networkv1.Phase
	reason, message string
	// dns is the address of the DNS service that the provider has allocated.
	dns string
	// finalizer is set if the network must have the finalizer, and usable if pods
	// can use it.
	finalizer, usable bool
	// ranges is the condition of a network with ranges of Service addresses.
	ranges *metav1.Condition
	// services is the condition about the Services of the network; nil if nothing
	// is known of them.
	services *metav1.Condition
	// record is for the pods of a network whose provider prepares them.
	record string
	// undecided is set if the status has to stay as it is: the provider has not
	// answered since the syncer was started.
	undecided bool
}

// decide returns the state that a network should have.
func decide(n *networkv1.Network, f facts) decision {
	kept := hasFinalizer(n) || f.provided.handed
	pending := func(phase networkv1.Phase, reason, message string) decision {
		return decision{phase: phase, reason: reason, message: message, finalizer: kept}
	}
	switch {
	case f.recalled:
		return decision{phase: networkv1.PhaseTerminating, reason: networkv1.ReasonPodsLeft, message: "the API of networks is being deleted"}
	case n.DeletionTimestamp != nil && (f.pods > 0 || !f.released):
		return pending(networkv1.PhaseTerminating, networkv1.ReasonPodsLeft, left(f.pods))
	case n.DeletionTimestamp != nil && f.provided.handed:
		return pending(networkv1.PhaseTerminating, networkv1.ReasonReleasing, releasing(n, f.provided.latest))
	case n.DeletionTimestamp != nil:
		return decision{phase: networkv1.PhaseTerminating, reason: networkv1.ReasonPodsLeft, message: left(0)}
	case f.provided.taken:
		return pending(networkv1.PhasePending, networkv1.ReasonNameTaken,
			"an earlier network of this name is deleted when its pods have ended and its provider has deleted it")
	case f.beyond || f.provided.full:
		return pending(networkv1.PhasePending, networkv1.ReasonTooManyNetworks,
			fmt.Sprintf("no more than the %d oldest networks can be used; delete others", maxNetworks))
	case !f.provided.offered:
		return pending(networkv1.PhasePending, networkv1.ReasonNoProvider,
			fmt.Sprintf("no provider offers networks of type %s; ask an admin of the platform for the types that are offered", n.Spec.Type))
	case f.ranged.rejection != nil:
		return pending(networkv1.PhaseFailed, f.ranged.rejection.Reason, f.ranged.rejection.Message)
	case f.provided.latest == nil:
		return decision{
			phase: networkv1.PhasePending, reason: networkv1.ReasonProvisioning, message: "its provider has not answered yet",
			finalizer: kept, undecided: n.Status.ObservedGeneration == n.Generation,
		}
	}
	return answered(n, *f.provided.latest, pending)
}

// answered returns the state of a network by the answer of its provider.
func answered(n *networkv1.Network, a answer, pending func(networkv1.Phase, string, string) decision) decision {
	rejection := plugins.AsRejection(a.err)
	switch {
	case rejection != nil:
		return pending(networkv1.PhaseFailed, reasonOf(rejection), told(rejection.Message))
	case a.err != nil:
		return pending(networkv1.PhaseUnknown, networkv1.ReasonProviderFailed, failing(n))
	case !a.state.Ready:
		return pending(networkv1.PhasePending, networkv1.ReasonProvisioning, told(a.state.Message))
	case n.Spec.HasExternalAddresses() && a.state.DNSServiceIP == "":
		return pending(networkv1.PhasePending, networkv1.ReasonNoDNSServiceIP,
			"waiting for the provider to allocate the address of the DNS service")
	}
	return decision{
		phase: networkv1.PhaseReady, reason: networkv1.ReasonReady, message: "pods can use the network", dns: a.state.DNSServiceIP,
		finalizer: true, usable: true,
	}
}

// failing returns the message of a network whose provider does not work. The
// cause concerns the platform.
func failing(n *networkv1.Network) string {
	return fmt.Sprintf("the provider of networks of type %s does not work; it is called again, "+
		"and an admin of the platform can read the cause in the syncer's log", n.Spec.Type)
}

// releasing returns the message of a network that its provider is deleting.
func releasing(n *networkv1.Network, latest *answer) string {
	switch {
	case latest == nil || latest.err == nil:
		return "its provider is deleting the network"
	case plugins.AsRejection(latest.err) != nil:
		return "its provider does not delete the network: " + told(latest.err.Error())
	}
	return failing(n)
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
	status := networkv1.NetworkStatus{Phase: d.phase, DNSServiceIP: d.dns, ObservedGeneration: n.Generation}
	// Conditions of other types are not the platform's.
	for _, c := range n.Status.Conditions {
		if c.Type == networkv1.ConditionReady || c.Type == networkv1.ConditionServiceRanges && d.ranges != nil ||
			c.Type == networkv1.ConditionServices && d.services != nil {
			status.Conditions = append(status.Conditions, c)
		}
	}
	for _, c := range []*metav1.Condition{d.ranges, d.services} {
		if c != nil {
			meta.SetStatusCondition(&status.Conditions, *c)
		}
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
