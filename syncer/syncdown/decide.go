package syncdown

import "github.com/virtualcluster/virtualcluster/syncer/session"

// observation is all that a decision about a tenant's object and its copy in
// the super cluster depends on.
type observation struct {
	tenant, super session.Presence
	// wanted: the object belongs in the super cluster, for example because a
	// pod refers to it.
	wanted bool
	// same: the super object is a copy of this tenant object, not of an earlier
	// one of the same name.
	same bool
	// foreign: the super object is not a copy of this tenant's.
	foreign bool
	// mirrored: the tenant's object is deleted with its copy, as a pod is.
	mirrored bool
	// started: the mirrored object has had a copy before.
	started bool
	// shortened: the copy is being deleted with a longer grace period than the
	// tenant gives it.
	shortened bool
	// finalized: the mirrored object has been deleted without a grace period, and
	// only its finalizers keep it.
	finalized bool
}

// action is what a reconcile does.
type action int

const (
	// nothing is to be done now; an event leads to the next reconcile.
	nothing action = iota
	// create the copy.
	create
	// update both sides: the copy from the tenant's object, and the tenant's
	// status from the copy.
	update
	// deleteSuper deletes the copy.
	deleteSuper
	// deleteTenant deletes the tenant's object, because its copy is being
	// deleted.
	deleteTenant
	// finalizeTenant completes the deletion of the tenant's object at once,
	// because its copy is gone.
	finalizeTenant
	// conflict: the copy's name is taken by an object that is not the tenant's.
	conflict
)

// decide returns the action that follows from an observation. It has no state:
// the same observation leads to the same action.
func decide(p observation) action {
	switch {
	case p.super == session.Absent:
		return decideWithoutCopy(p)
	case p.foreign:
		return decideForeign(p)
	case p.shortened && p.mirrored && p.super == session.Deleting:
		return deleteSuper
	case p.tenant == session.Absent, !p.wanted, !p.same:
		return deleteOnce(p)
	case p.mirrored:
		return decideMirrored(p)
	case p.super == session.Deleting:
		return nothing
	}
	return update
}

// decideWithoutCopy decides for an object without a copy.
func decideWithoutCopy(p observation) action {
	switch {
	case p.tenant == session.Absent, !p.wanted:
		return nothing
	case p.mirrored && p.finalized && p.tenant == session.Deleting:
		return nothing
	case p.mirrored && p.started:
		return finalizeTenant
	case p.mirrored && p.tenant == session.Deleting:
		return finalizeTenant
	}
	return create
}

// decideForeign decides for an object whose copy has the name of a foreign
// object.
func decideForeign(p observation) action {
	if p.tenant == session.Absent || !p.wanted {
		return nothing
	}
	return conflict
}

// decideMirrored decides for a mirrored object with a copy.
func decideMirrored(p observation) action {
	switch {
	case p.tenant == session.Present && p.super == session.Deleting:
		return deleteTenant
	case p.tenant == session.Deleting && p.super == session.Present:
		return deleteSuper
	}
	return update
}

// deleteOnce deletes the copy unless it is being deleted.
func deleteOnce(p observation) action {
	if p.super == session.Deleting {
		return nothing
	}
	return deleteSuper
}
