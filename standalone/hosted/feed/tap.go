package feed

import (
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Tap receives all changes of all tenants, with their records. It is for the
// host alone. Its methods are called in the goroutine of Run, and must not
// block.
type Tap interface {
	// Apply receives changes, in the order of their revisions.
	Apply(events []mvccpb.Event)
	// Missed is called when changes were missed, before those after them.
	Missed()
}

// AddTap adds a tap, before Run.
func (f *Feed) AddTap(tap Tap) { f.taps = append(f.taps, tap) }
