package sharedcrds

import "github.com/virtualcluster/virtualcluster/internal/names"

// observation is what the next step for a CRD depends on.
type observation struct {
	// answer is that of the lookup; forced reports whether the CRD overrides the
	// tenant's.
	answer Answer
	forced bool
	record *record // nil if there is none
	found  *crd    // of the tenant; nil if there is none
	// asCopied reports whether the spec of the tenant's CRD is that of the copy,
	// asOwn whether it is that of the tenant's own CRD, and trimmed whether that
	// has all versions in which objects may be stored.
	asCopied, asOwn, trimmed bool
	// purged reports whether an admin allows to delete the CRD with its objects: a
	// recalled copy, or one of the tenant's own that a forced one cannot replace.
	purged bool
}

// marked reports whether the tenant's CRD has the mark of the record.
func (o *observation) marked() bool { return o.found != nil && markOf(o.found) == o.record.Mark }

// unmarked reports whether the tenant's CRD has no mark.
func (o *observation) unmarked() bool { return markOf(o.found) == "" }

// fixed returns why the tenant cannot make the copy its own; empty if it can.
func (o *observation) fixed() string {
	switch {
	case o.forced:
		return names.Forced
	case o.record.hasOwn():
		return names.Replaced
	}
	return ""
}

// step is what a reconcile does next for a CRD.
type step string

// Steps. A step executes one write, or a write and its record.
const (
	// nothing: the tenant's CRD is as it should be.
	nothing step = "nothing"
	// await that the tenant's apiserver has deleted the CRD.
	await step = "await"
	// forget the record: the CRD is the tenant's own.
	forget step = "forget"

	// intend to create a copy, create it, and acknowledge that it exists.
	intend      step = "intend"
	create      step = "create"
	acknowledge step = "acknowledge"
	// repair a copy: write it as it should be.
	repair step = "repair"

	// recall a copy, close it to writes, and delete it if it has no objects; it
	// is unserved if it has.
	recall        step = "recall"
	shut          step = "shut"
	deleteIfEmpty step = "deleteIfEmpty"
	unserve       step = "unserve"
	// purge a recalled copy with its objects.
	purge step = "purge"

	// keep the tenant's own CRD aside, replace it, and confirm that.
	keep    step = "keep"
	replace step = "replace"
	confirm step = "confirm"

	// restore the tenant's own CRD, reopen its versions, rewrite its objects,
	// finish, and write it exactly as it was.
	restore step = "restore"
	reopen  step = "reopen"
	rewrite step = "rewrite"
	finish  step = "finish"
	exact   step = "exact"
)

// next returns the next step for a CRD.
func next(o observation) step {
	switch {
	case o.record == nil:
		return nextWithout(o)
	case o.record.Phase == creating:
		return nextCreating(o)
	case o.found == nil || o.found.UID != o.record.UID:
		return forget
	case o.found.DeletionTimestamp != nil:
		return await
	case o.record.hasOwn():
		return nextOwn(o)
	}
	return nextCopy(o)
}

// nextWithout returns the next step for a CRD without a record.
func nextWithout(o observation) step {
	switch {
	case o.answer != UseSystem:
		return nothing
	case o.found == nil:
		return intend
	case o.found.DeletionTimestamp != nil:
		return await
	}
	return keep
}

// nextCreating returns the next step for a copy that may have been created.
func nextCreating(o observation) step {
	switch {
	case o.marked():
		return acknowledge
	case o.found != nil || o.answer != UseSystem:
		return forget
	}
	return create
}

// nextCopy returns the next step for a copy that has replaced nothing.
func nextCopy(o observation) step {
	phase := o.record.Phase
	switch {
	case phase == copied && o.unmarked() && !o.forced:
		return forget // the tenant has adopted it
	case o.answer == UseSystem && phase == copied:
		return repair
	case o.answer == UseSystem:
		return acknowledge
	case phase == copied:
		return recall
	case phase == closing:
		return shut
	case phase == closed:
		return deleteIfEmpty
	case o.purged:
		return purge
	}
	return unserve
}

// nextOwn returns the next step for the tenant's own CRD, or the copy that has
// replaced it.
func nextOwn(o observation) step {
	system, changed := o.answer == UseSystem, o.found.Generation != o.record.Generation
	switch o.record.Phase {
	case keeping:
		switch {
		case o.marked(), changed && o.asCopied:
			return confirm
		case !system:
			return forget
		}
		return replace
	case replaced:
		if system {
			return repair
		}
		return restore
	case finishing:
		switch {
		case o.unmarked() && (changed || o.asOwn):
			return forget
		case system:
			return confirm
		case changed:
			return restore
		}
		return exact
	default: // restoring, rewriting
		switch {
		case system:
			return confirm
		case o.trimmed:
			return finish
		case o.record.Phase == restoring:
			return reopen
		}
		return rewrite
	}
}
