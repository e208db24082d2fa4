package informer

import "sync"

// account is the memory of one informer's objects within the budget. A list
// that is being read will replace the stored objects, so the larger of the two
// counts.
type account struct {
	mu              sync.Mutex
	kept, collected int64
}

// update changes an account, and reports whether the budget allows it. If it
// does not, the account is unchanged.
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

// collect adds the size of an object of the list that is being read.
func (i *Informer) collect(size int64) bool {
	return i.update(func(kept, collected int64) (int64, int64) { return kept, collected + size })
}

// forgetCollected starts a new list.
func (i *Informer) forgetCollected() {
	i.update(func(kept, _ int64) (int64, int64) { return kept, 0 })
}

// keepCollected replaces the stored objects by the list.
func (i *Informer) keepCollected() {
	i.update(func(_, collected int64) (int64, int64) { return collected, 0 })
}

// keep adds to the size of the stored objects.
func (i *Informer) keep(change int64) bool {
	return i.update(func(kept, collected int64) (int64, int64) { return kept + change, collected })
}
