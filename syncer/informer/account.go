package informer

import "sync"

// account is what the objects of one informer take of the budget. A list that is being read takes the place of what is kept, so the
// larger of the two counts.
type account struct {
	mu              sync.Mutex
	kept, collected int64
}

// update changes an account, and reports whether the budget allows that. If not, nothing changes.
func (i *Informer) update(change func(kept, collected int64) (int64, int64)) bool {
	if i.group == nil {
		return true
	}
	a := &i.account
	a.mu.Lock()
	defer a.mu.Unlock()
	kept, collected := change(a.kept, a.collected)
	if !i.group.budget.take(kindOf(i.example), max(kept, collected)-max(a.kept, a.collected)) {
		i.reject(ReasonMemory)
		return false
	}
	a.kept, a.collected = kept, collected
	return true
}

// collect counts an object of the list that is being read.
func (i *Informer) collect(size int64) bool {
	return i.update(func(kept, collected int64) (int64, int64) { return kept, collected + size })
}

// forgetCollected begins a new list.
func (i *Informer) forgetCollected() {
	i.update(func(kept, _ int64) (int64, int64) { return kept, 0 })
}

// keepCollected replaces what is kept by the list.
func (i *Informer) keepCollected() {
	i.update(func(_, collected int64) (int64, int64) { return collected, 0 })
}

// keep adds to the size of the objects that are kept.
func (i *Informer) keep(change int64) bool {
	return i.update(func(kept, collected int64) (int64, int64) { return kept + change, collected })
}
