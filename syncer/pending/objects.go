package pending

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// TellAfter is how long an object is pending before its tenant gets an event,
// and its VirtualCluster a condition: objects that depend on each other are
// created at about the same time, in any order. Rejections are reported at once.
const TellAfter = 10 * time.Second

// A rejected object is retried after rejectedFirst, then after twice as long
// each time, up to rejectedMost: the tenant or an admin has to act first.
const (
	rejectedFirst = time.Second
	rejectedMost  = time.Minute
)

// Objects are the objects of a tenant that are not synced for now.
type Objects struct {
	// count is called when objects of a kind enter or leave a state.
	count func(kind string, state State, by int)

	mu    sync.Mutex
	known map[kinds.ObjectKey]Entry
	ended bool
}

// Entry describes a pending object.
type Entry struct {
	State State
	// On and Until are those of the [Outcome], Message is the text of its cause.
	On      string
	Until   time.Time
	Message string
	// Since is when the object became pending, in whatever state.
	Since time.Time
	// Told is the message of the last event.
	Told string
	// Denied is set for an object that validators or limits reject.
	Denied bool
	// Retry is how long a rejected object waits before it is retried.
	Retry time.Duration
}

// String returns the state and what it is about, in one line.
func (e Entry) String() string {
	if e.On == "" {
		return string(e.State) + ": " + e.Message
	}
	if e.State == Rejected {
		return string(e.State) + " by " + e.On + ": " + e.Message
	}
	return string(e.State) + " " + e.On
}

// NewObjects returns a tenant's set of pending objects, which is empty. It calls
// count when objects of a kind enter or leave a state.
func NewObjects(count func(kind string, state State, by int)) *Objects {
	return &Objects{count: count, known: map[kinds.ObjectKey]Entry{}}
}

// Record records the outcome of a reconcile that ended now, and returns what is
// known of the object since. An object that is synced is no longer pending. The
// turn of another object says nothing new about a pending one.
func (o *Objects) Record(kind string, key client.ObjectKey, outcome Outcome, now time.Time) Entry {
	k := kinds.ObjectKey{Kind: kind, Key: key}
	o.mu.Lock()
	defer o.mu.Unlock()
	was, known := o.known[k]
	if outcome.State == Synced {
		o.lockedForget(k)
		return Entry{State: Synced}
	}
	if known && outcome.IsValidation() {
		return was
	}
	is := was.follow(outcome, now)
	if o.ended {
		return is
	}
	if !known || was.State != is.State {
		o.lockedForget(k)
		o.count(kind, is.State, 1)
	}
	o.known[k] = is
	return is
}

// follow returns the entry after another outcome.
func (e Entry) follow(outcome Outcome, now time.Time) Entry {
	is := Entry{
		State: outcome.State, On: outcome.On, Until: outcome.Until, Message: outcome.Err.Error(),
		Since: e.Since, Told: e.Told, Denied: outcome.Denial != nil,
	}
	if is.Since.IsZero() {
		is.Since = now
	}
	if is.State == Rejected && !is.Denied {
		is.Retry = min(max(2*e.Retry, rejectedFirst), rejectedMost)
	}
	return is
}

// lockedForget removes an object that may be pending.
func (o *Objects) lockedForget(k kinds.ObjectKey) {
	if was, known := o.known[k]; known {
		o.count(k.Kind, was.State, -1)
		delete(o.known, k)
	}
}

// Tell records the message of the event on an object that is still pending.
func (o *Objects) Tell(kind string, key client.ObjectKey, message string) {
	k := kinds.ObjectKey{Kind: kind, Key: key}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, known := o.known[k]; known {
		e.Told = message
		o.known[k] = e
	}
}

// Has reports whether an object is pending.
func (o *Objects) Has(kind string, key client.ObjectKey) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.known[kinds.ObjectKey{Kind: kind, Key: key}]
	return known
}

// AnyDenied returns an object of a kind that validators or limits reject.
func (o *Objects) AnyDenied(kind string) (key client.ObjectKey, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, e := range o.known {
		if e.Denied && k.Kind == kind {
			return k.Key, true
		}
	}
	return client.ObjectKey{}, false
}

// Select returns the pending objects that f selects.
func (o *Objects) Select(f func(Entry) bool) []kinds.ObjectKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	var selected []kinds.ObjectKey
	for k, e := range o.known {
		if f(e) {
			selected = append(selected, k)
		}
	}
	return selected
}

// Object is a pending object with what is known of it.
type Object struct {
	kinds.ObjectKey
	Entry
}

// Oldest returns the objects that became pending at a time or before, the
// oldest first.
func (o *Objects) Oldest(before time.Time) []Object {
	objects := o.since(before)
	slices.SortFunc(objects, Object.compare)
	return objects
}

// since returns the objects that became pending at a time or before, in any
// order.
func (o *Objects) since(before time.Time) []Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	var objects []Object
	for k, e := range o.known {
		if !e.Since.After(before) {
			objects = append(objects, Object{k, e})
		}
	}
	return objects
}

// compare orders objects by age, and those of the same age by kind and name.
func (a Object) compare(b Object) int {
	return cmp.Or(
		a.Since.Compare(b.Since), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name),
	)
}

// Summary describes the objects that are pending for TellAfter or longer in one
// line; empty if there are none.
func (o *Objects) Summary(now time.Time) string {
	objects := o.since(now.Add(-TellAfter))
	if len(objects) == 0 {
		return ""
	}
	noun := "objects"
	if len(objects) == 1 {
		noun = "object"
	}
	oldest := slices.MinFunc(objects, Object.compare)
	return cut(fmt.Sprintf("%d %s pending, oldest %s %s: %s", len(objects), noun, oldest.Kind, nameOf(oldest.Key), oldest.Entry), maxMessage)
}

// nameOf returns the name of an object with its namespace, if it has one.
func nameOf(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// End forgets all objects for good: the tenant is disengaged.
func (o *Objects) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.known {
		o.lockedForget(k)
	}
	o.ended = true
}
