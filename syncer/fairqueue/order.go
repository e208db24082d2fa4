package fairqueue

// ordered is a value that can stand in an order, and knows where it does.
type ordered[V any] interface {
	before(other V) bool
	setSlot(slot int)
}

// order is a heap for container/heap: on top is the value that comes before all
// others.
type order[V ordered[V]] []V

// top returns the value that comes before all others, or the zero value if there
// is none.
func (o order[V]) top() (v V) {
	if len(o) > 0 {
		v = o[0]
	}
	return v
}

// Len implements heap.Interface.
func (o order[V]) Len() int { return len(o) }

// Less implements heap.Interface.
func (o order[V]) Less(i, j int) bool { return o[i].before(o[j]) }

// Swap implements heap.Interface.
func (o order[V]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].setSlot(i)
	o[j].setSlot(j)
}

// Push implements heap.Interface.
func (o *order[V]) Push(x any) {
	v, _ := x.(V)
	v.setSlot(len(*o))
	*o = append(*o, v)
}

// Pop implements heap.Interface.
func (o *order[V]) Pop() any {
	last := len(*o) - 1
	v := (*o)[last]
	clear((*o)[last:])
	*o = (*o)[:last]
	return v
}
