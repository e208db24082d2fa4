package host

import (
	"slices"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// stage is how far this replica is with a move.
type stage int

const (
	// idle: it does nothing.
	idle stage = iota
	// preparing: the new store is prepared, and the control plane serves.
	preparing
	// prepared: the control plane can be stopped.
	prepared
	// transferring: the control plane is stopped.
	transferring
	// opened: the control plane can start where its data is.
	opened
)

// step is what to do next with a control plane and its data.
type step int

const (
	// serve: run the control plane where its data is.
	serve step = iota
	// prepare: prepare the new store, and serve.
	prepare
	// transferData: stop the control plane and move the data.
	transferData
	// reopen: allow writes where the data is. A move has ended in between.
	reopen
	// await: the data is being moved.
	await
)

// situation is what is known of the data of a control plane.
type situation struct {
	// at is the store with the data, and want the one that is to have it.
	at, want string
	// stoppedFor is the store of the move that has stopped the control plane,
	// perhaps in another replica; empty if none has.
	stoppedFor string
	// connected: this replica is connected to the store that is to have the data.
	connected bool
	// deferred: a move has failed a moment ago.
	deferred bool
	stage    stage
}

// decide returns what to do next. An interrupted move begins again: nothing is
// known of how far another replica was.
func decide(s situation) step {
	moves := s.at != s.want && s.connected && !s.deferred
	switch {
	case s.stage == transferring:
		return await
	case s.stage == opened:
		return serve
	case s.stoppedFor == s.want && moves: // it was prepared
		return transferData
	case s.stoppedFor != "":
		return reopen
	case moves && s.stage == prepared:
		return transferData
	case moves && s.stage == idle:
		return prepare
	default:
		return serve
	}
}

// stoppedFor returns the store of the move that has stopped a control plane; empty
// if none has.
func stoppedFor(plane *tenancyv1alpha1.HostedControlPlane) string {
	if plane.Status.Move == nil {
		return ""
	}
	return plane.Status.Move.To
}

// leftovers returns the stores, other than the one with the data, that moves may
// have left something in.
func leftovers(plane *tenancyv1alpha1.HostedControlPlane) []string {
	var of []string
	if plane.Status.Attempt > 0 {
		of = append(of, plane.Spec.Store)
	}
	if to := stoppedFor(plane); to != "" {
		of = append(of, to)
	}
	for _, each := range plane.Status.Remainders {
		of = append(of, each.Store)
	}
	slices.Sort(of)
	return slices.DeleteFunc(slices.Compact(of), func(store string) bool { return store == plane.DataStore() })
}
