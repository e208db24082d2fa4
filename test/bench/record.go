package bench

import (
	"slices"
	"sync"
	"time"
)

// moment is a point in the life of a pod.
type moment int

// The moments of a pod's life, in their order.
const (
	created   moment = iota // the creation was answered
	copied                  // the super cluster's watch shows the pod, or its copy
	bound                   // the super cluster's watch shows its node
	ran                     // the super cluster's watch shows it running
	shown                   // the tenant's watch shows it running
	superGone               // the super cluster's watch shows that it is gone
	gone                    // the tenant's watch shows that it is gone
	moments
)

// String says what a pod has come to.
func (m moment) String() string {
	return [moments]string{
		"are created", "are copied", "have a node", "run in the super cluster", "run", "are gone from the super cluster", "are gone",
	}[m]
}

// life is when a pod came to each moment; zero if it did not yet.
type life struct {
	group string
	at    [moments]time.Time
}

// counts are how many pods came to each moment.
type counts [moments]int

// record holds the lives of the pods of a load.
type record struct {
	mu    sync.Mutex
	lives map[string]*life
	// counts are by group, and of all pods under the empty group.
	counts map[string]*counts
	// changed is closed when a pod comes to another moment, if somebody waits for that.
	changed chan struct{}
}

func newRecord() *record { return &record{lives: map[string]*life{}, counts: map[string]*counts{}} }

// changes is closed when a pod comes to another moment.
func (r *record) changes() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// noteCreated notes when the creation of a pod of a group was answered. A watch can have been faster.
func (r *record) noteCreated(pod, group string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.life(pod)
	if group != "" {
		l.group = group
		for m := range moments {
			if !l.at[m].IsZero() {
				r.count(group)[m]++
			}
		}
	}
	r.come(l, created, at)
}

// note notes when a pod came to a moment; the first time counts.
func (r *record) note(pod string, m moment, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.come(r.life(pod), m, at)
}

func (r *record) life(pod string) *life {
	l := r.lives[pod]
	if l == nil {
		l = &life{}
		r.lives[pod] = l
	}
	return l
}

func (r *record) come(l *life, m moment, at time.Time) {
	if !l.at[m].IsZero() {
		return
	}
	l.at[m] = at
	r.count("")[m]++
	if l.group != "" {
		r.count(l.group)[m]++
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *record) count(group string) *counts {
	c := r.counts[group]
	if c == nil {
		c = &counts{}
		r.counts[group] = c
	}
	return c
}

// came is how many pods of a group have come to a moment; the empty group is all pods.
func (r *record) came(group string, m moment) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count(group)[m]
}

// moments are when the pods of a group came to a moment, the first one first.
func (r *record) moments(group string, m moment) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var times []time.Time
	for _, l := range r.lives {
		if !l.at[m].IsZero() && (group == "" || l.group == group) {
			times = append(times, l.at[m])
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// spans are the times that the pods of a group took from one moment to another. A watch that was faster than the answer to the
// creation took no time.
func (r *record) spans(group string, from, to moment) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var spans []time.Duration
	for _, l := range r.lives {
		if !l.at[from].IsZero() && !l.at[to].IsZero() && (group == "" || l.group == group) {
			spans = append(spans, max(l.at[to].Sub(l.at[from]), 0))
		}
	}
	return spans
}
