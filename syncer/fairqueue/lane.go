package fairqueue

// The levels of priority in a lane. With few levels, the operations of a lane
// are O(1). They suffice for what the syncer distinguishes: work under way, new
// work, periodic checks.
const (
	high = iota
	normal
	low
	levels
)

// share is the number of turns of a lane after which a lower level that waits
// gets one.
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

// lane holds the items of a tenant. It exists while the tenant has items or
// owes. Queue.mu guards it.
type lane[T comparable] struct {
	tenant string
	config
	// class is the class that config selects.
	class *class[T]
	// items are all items of the tenant.
	items list[*item[T]]
	// waiting are the ready items by level, in the order in which they became
	// ready.
	waiting [levels]list[*item[T]]
	// ready counts the items in waiting.
	ready    int
	inFlight int
	// skipped counts the turns since a waiting lower level was last served.
	skipped int
	// offered is the number of items that workers were woken for.
	offered int
	// pass decides the lane's turn: the lowest of its class is served next.
	pass int64
	// joined is set while items are ready and the tenant is not paused, even if
	// its cap keeps the lane from having a seat.
	joined bool
	// seat is the number of the seat, 0 for none; row is the row of the seat.
	seat uint64
	row  *order[*lane[T]]
	// owes is set while the lane is in class.owing, and has no items.
	owes bool
	// slot is its index in a row of class.seats or in class.owing.
	slot int
}

// open returns how many items could be handed out now.
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

// pick returns the highest level with items, but at every share-th turn the
// lower level that has waited longest, so that no level starves.
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
