package fairqueue

import (
	"container/heap"
	"time"
)

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

// delays is a heap of the delayed items, the first due on top.
type delays[T comparable] []*item[T]

var _ heap.Interface = (*delays[string])(nil)

// Len implements heap.Interface.
func (d delays[T]) Len() int { return len(d) }

// Less implements heap.Interface.
func (d delays[T]) Less(i, j int) bool { return d[i].at.Before(d[j].at) }

// Swap implements heap.Interface.
func (d delays[T]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].slot, d[j].slot = i, j
}

// Push implements heap.Interface.
func (d *delays[T]) Push(x any) {
	it, _ := x.(*item[T])
	it.slot = len(*d)
	*d = append(*d, it)
}

// Pop implements heap.Interface.
func (d *delays[T]) Pop() any {
	last := len(*d) - 1
	it := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return it
}
