package bench

import (
	"slices"
	"sync"
	"time"
)

// moment is a point in the life of a pod.
type moment int

// The moments of a pod's life, in order.
const (
	created   moment = iota // the response to its creation
	copied                  // the super cluster's watch has the pod, or its copy
	bound                   // the super cluster's watch has its node
	ran                     // the super cluster's watch has it running
	shown                   // the tenant's watch has it running
	superGone               // the super cluster's watch has its deletion
	gone                    // the tenant's watch has its deletion
	moments
)

// String describes pods that have reached the moment.
func (m moment) String() string {
	return [moments]string{
		"are created", "are copied", "have a node", "run in the super cluster", "run", "are gone from the super cluster", "are gone",
	}[m]
}

// life has the times at which a pod reached each moment; zero for those that it
// has not.
type life struct {
	group string
	at    [moments]time.Time
}

// counts has the number of pods that have reached each moment.
type counts [moments]int

// record has the lives of the pods of a load.
type record struct {
	mu    sync.Mutex
	lives map[string]*life
	// counts has the counts by group; the empty group is all pods.
	counts map[string]*counts
	// changed is closed when a pod reaches another moment; nil without a
	// waiter.
	changed chan struct{}
}

func newRecord() *record { return &record{lives: map[string]*life{}, counts: map[string]*counts{}} }

// changes returns a channel that is closed when a pod reaches another moment.
func (r *record) changes() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// noteCreated records the response to the creation of a pod of a group. The
// watch may have been faster.
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

// note records that a pod reached a moment; only the first time counts.
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

// came returns the number of pods of a group that have reached a moment; the
// empty group is all pods.
func (r *record) came(group string, m moment) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count(group)[m]
}

// moments returns the times at which the pods of a group reached a moment, in
// order.
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

// spans returns the times that the pods of a group took from one moment to
// another; 0 if the watch was faster than the response to the creation.
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
