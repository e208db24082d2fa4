package fairqueue

// element is an element of a list. It is embedded in its value, so that
// inserting, removing and moving are O(1) and do not allocate.
type element[V any] struct {
	value      V
	prev, next *element[V]
}

// list is a doubly linked list. The zero value is empty.
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

// spares bounds the size of a pool, so that a burst does not keep its memory
// for ever.
const spares = 1024

// pool recycles values, so that a steady load does not allocate.
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

// put clears v, so that it keeps no other memory alive, and recycles it unless
// the pool is full.
func (p *pool[V]) put(v *V) {
	var zero V
	*v = zero
	if len(p.free) < spares {
		p.free = append(p.free, v)
	}
}
