package fairqueue

// The levels of priority in a lane. Few levels keep a lane's operations O(1),
// and nobody needs more: what is under way, what begins, periodic checks.
const (
	high = iota
	normal
	low
	levels
)

// share is how many turns of a lane it takes for the keys that higher
// priorities keep waiting to get one.
const share = 16

func levelOf(priority int) int {
	switch {
	case priority > 0:
		return high
	case priority < 0:
		return low
	default:
		return normal
	}
}

// lane is a tenant that has at least one item, or owes for those it had.
// Queue.mu guards it.
type lane[T comparable] struct {
	tenant string
	config
	// class is that of the config.
	class *class[T]
	// items are all of the tenant's.
	items list[*item[T]]
	// waiting are the ready items by level, each in the order they came.
	waiting [levels]list[*item[T]]
	// ready counts the items in waiting.
	ready    int
	inFlight int
	// skipped counts the turns taken from those waiting at a lower level.
	skipped int
	// offered is how many items workers have been woken for.
	offered int
	// pass tells when the lane's turn is: the lowest of its class is served.
	pass int64
	// joined is set while items are ready and the tenant is not paused, whether
	// its cap lets the lane have a seat or not.
	joined bool
	// seat is the number of the seat, 0 for none; row is the row that it is in.
	seat uint64
	row  *order[*lane[T]]
	// owes is set while the lane is among class.owing, and has no items.
	owes bool
	// slot is its place in a row of class.seats or in class.owing.
	slot int
}

// open returns how many items could be handed out at once.
func (l *lane[T]) open(limit int) int {
	if l.paused {
		return 0
	}
	return max(0, min(l.ready, limit-l.inFlight))
}

func (l *lane[T]) push(it *item[T]) {
	it.state = ready
	l.waiting[levelOf(it.priority)].pushBack(&it.place)
	l.ready++
}

func (l *lane[T]) remove(it *item[T]) {
	l.waiting[levelOf(it.priority)].remove(&it.place)
	l.ready--
}

// take moves the next item into flight.
func (l *lane[T]) take() *item[T] {
	it := l.waiting[l.pick()].front()
	l.remove(it)
	l.inFlight++
	l.class.inFlight++
	it.state, it.inFlight = idle, true
	return it
}

// pick returns the highest level that has items, but at every share-th turn
// the level below it that has waited longest: so no level starves.
func (l *lane[T]) pick() int {
	top, below := -1, -1
	for i := range l.waiting {
		it := l.waiting[i].front()
		switch {
		case it == nil:
		case top < 0:
			top = i
		case below < 0 || it.at.Before(l.waiting[below].front().at):
			below = i
		}
	}
	if below < 0 {
		return top
	}
	if l.skipped++; l.skipped < share {
		return top
	}
	l.skipped = 0
	return below
}
