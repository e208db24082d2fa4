package fairqueue

// ordered is a value that can be in an order, and knows its index there.
type ordered[V any] interface {
	before(other V) bool
	setSlot(slot int)
}

// order is a heap for container/heap, with the first value on top.
type order[V ordered[V]] []V

// top returns the first value, or the zero value if there is none.
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
