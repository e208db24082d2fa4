package syncdown

import "github.com/virtualcluster/virtualcluster/syncer/session"

// pair is all that a decision about a tenant's object and its copy in the super cluster depends on.
type pair struct {
	tenant, super session.Presence
	// wanted: the object belongs in the super cluster, for example because a pod refers to it.
	wanted bool
	// same: the super object is a copy of this tenant object, not of an earlier one of the same name.
	same bool
	// foreign: the super object is nobody's copy.
	foreign bool
	// mirrored: the tenant's object lives and dies with its copy, as a pod does.
	mirrored bool
	// started: the mirrored object has had a copy before.
	started bool
	// hurried: the copy of a mirrored object is being deleted, and has more time for it than the tenant gives it.
	hurried bool
}

// action is what a reconcile does about a pair.
type action int

const (
	// nothing is to be done now; the event of what is awaited leads here again.
	nothing action = iota
	// create the copy.
	create
	// update both sides: the copy from the tenant's object, and the tenant's status from the copy.
	update
	// remove the copy.
	remove
	// retire begins the deletion of the tenant's object, because its copy is being deleted.
	retire
	// finish ends the deletion of the tenant's object at once, because its copy is gone.
	finish
	// conflict: the copy's name is taken by an object that is not the tenant's.
	conflict
)

// decide says what brings a pair closer to where it should be. It knows no history: the same pair gets the same action.
func decide(p pair) action {
	switch {
	case p.super == session.Absent:
		return decideWithoutCopy(p)
	case p.foreign:
		return decideForeign(p)
	case p.hurried && p.mirrored && p.super == session.Deleting:
		return remove
	case p.tenant == session.Absent, !p.wanted, !p.same:
		return removeOnce(p)
	case p.mirrored:
		return decideMirrored(p)
	case p.super == session.Deleting:
		return nothing
	}
	return update
}

// decideWithoutCopy decides where the super cluster holds nothing.
func decideWithoutCopy(p pair) action {
	switch {
	case p.tenant == session.Absent, !p.wanted:
		return nothing
	case p.mirrored && p.started:
		return finish
	case p.mirrored && p.tenant == session.Deleting:
		return finish
	}
	return create
}

// decideForeign decides where something that is not ours has the name.
func decideForeign(p pair) action {
	if p.tenant == session.Absent || !p.wanted {
		return nothing
	}
	return conflict
}

// decideMirrored decides for an object that both sides hold and that lives and dies with its copy.
func decideMirrored(p pair) action {
	switch {
	case p.tenant == session.Present && p.super == session.Deleting:
		return retire
	case p.tenant == session.Deleting && p.super == session.Present:
		return remove
	}
	return update
}

// removeOnce removes the copy unless it is on its way out.
func removeOnce(p pair) action {
	if p.super == session.Deleting {
		return nothing
	}
	return remove
}
