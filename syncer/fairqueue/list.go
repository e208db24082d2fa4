package fairqueue

// element is a place in a list. It lives inside the value it stands for, so
// that joining, leaving and moving cost O(1) and no allocation.
type element[V any] struct {
	value      V
	prev, next *element[V]
}

// list is doubly linked; its zero value is empty.
type list[V any] struct {
	head, tail *element[V]
}

func (l *list[V]) empty() bool { return l.head == nil }

// front returns the first value, or the zero value if there is none.
func (l *list[V]) front() (v V) {
	if l.head != nil {
		v = l.head.value
	}
	return v
}

func (l *list[V]) pushBack(e *element[V]) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
}

func (l *list[V]) remove(e *element[V]) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// spares bounds what a pool keeps, so that a burst does not hold its memory
// for ever.
const spares = 1024

// pool recycles values so that a steady load allocates nothing.
type pool[V any] struct {
	free []*V
}

func (p *pool[V]) get() *V {
	last := len(p.free) - 1
	if last < 0 {
		return new(V)
	}
	v := p.free[last]
	p.free = p.free[:last]
	return v
}

// put clears v, so that it keeps nothing else alive, and may keep it.
func (p *pool[V]) put(v *V) {
	var zero V
	*v = zero
	if len(p.free) < spares {
		p.free = append(p.free, v)
	}
}
