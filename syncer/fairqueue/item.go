package fairqueue

import "time"

// state is what an item waits for. Whether it is in flight is independent of
// it: item.inFlight.
type state int8

const (
	// idle items are not enqueued.
	idle state = iota
	// delayed items are in Queue.delays until they are due.
	delayed
	// held items are due but still in flight.
	held
	// ready items are in a level of their lane.
	ready
)

// item is the only record of a key. It exists while the key is enqueued, in
// flight, or has failures to remember.
type item[T comparable] struct {
	key      T
	lane     *lane[T]
	state    state
	inFlight bool
	priority int
	failures int
	// at is the time at which a delayed item will be due, and at which any
	// other item became due.
	at time.Time
	// slot is the index of a delayed item in Queue.delays.
	slot int
	// sibling is the element of lane.items.
	sibling element[*item[T]]
	// place is the element of a ready item in its level.
	place element[*item[T]]
}

// before reports whether a delayed item is due before another.
func (it *item[T]) before(other *item[T]) bool { return it.at.Before(other.at) }

func (it *item[T]) setSlot(slot int) { it.slot = slot }
