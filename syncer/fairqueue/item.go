package fairqueue

import "time"

// state says what an item waits for. Whether a worker holds it is told apart,
// by item.inFlight.
type state int8

const (
	// idle items are not asked for.
	idle state = iota
	// delayed items are in Queue.delays until they are due.
	delayed
	// held items are due and wait for the worker that still has them.
	held
	// ready items are in a level of their lane.
	ready
)

// item is the only record of a key. It exists while the key is asked for, in
// flight, or has failures to remember.
type item[T comparable] struct {
	key      T
	lane     *lane[T]
	state    state
	inFlight bool
	priority int
	failures int
	// at is when a delayed item will be due, and when any other became due.
	at time.Time
	// slot is the place of a delayed item in Queue.delays.
	slot int
	// sibling is the place in lane.items.
	sibling element[*item[T]]
	// place is where a ready item stands in its level.
	place element[*item[T]]
}

// before says whether a delayed item is due before another.
func (it *item[T]) before(other *item[T]) bool { return it.at.Before(other.at) }

func (it *item[T]) setSlot(slot int) { it.slot = slot }
