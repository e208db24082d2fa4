package views

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
)

// contents has the objects of a view from one list on. It is the receiver of a
// subscription.
type contents struct {
	view         *view
	transform    cache.TransformFunc
	store        cache.Indexer
	subscription *feed.Subscription
	// complete reports whether the store has had all objects.
	complete atomic.Bool
	// revision is the last one that all objects are up to date with.
	revision atomic.Int64
}

// Names implements feed.Receiver.
func (c *contents) Names() []string { return c.store.ListKeys() }

// Receive implements feed.Receiver.
func (c *contents) Receive(change feed.Change) {
	// Upstream's transforms and index functions run here.
	defer Recovered(func(err error) {
		c.view.owner.fail(fmt.Errorf("apply a change of %s %s: %w", c.view.kind.name, change.Name, err))
	})
	if change.Value == nil {
		c.remove(change)
		return
	}
	revision := strconv.FormatInt(change.Revision, 10)
	if known := c.get(change.Name); known != nil && known.GetResourceVersion() == revision {
		return // listed again
	}
	object, err := c.decode(change.Name, change.Value, revision)
	if err != nil {
		c.view.owner.fail(err)
		return
	}
	c.put(change, object)
}

// Listed implements feed.Receiver.
func (c *contents) Listed(revision int64) {
	c.revision.Store(revision)
	v := c.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.contents != c || v.closed || v.current.Load() == c {
		return
	}
	c.complete.Store(true)
	v.current.Store(c)
	close(v.listed)
	v.begin()
}

func (c *contents) get(name string) metav1.Object {
	known, exists, err := c.store.GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	return known.(metav1.Object)
}

// decode returns an object of the view's version, which is never changed again.
func (c *contents) decode(name string, value []byte, revision string) (metav1.Object, error) {
	decoded, err := c.view.kind.decodeRecord(name, value, revision)
	if err != nil {
		return nil, err
	}
	transformed, err := Economize(decoded)
	if err == nil && c.transform != nil {
		transformed, err = c.transform(transformed)
	}
	if err != nil {
		return nil, fmt.Errorf("transform %s %s: %w", c.view.kind.name, name, err)
	}
	return meta.Accessor(transformed)
}

func (c *contents) put(change feed.Change, object metav1.Object) {
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	if c.view.contents != c || c.view.closed {
		return
	}
	known := c.get(change.Name)
	if err := c.store.Update(object); err != nil {
		c.view.owner.fail(fmt.Errorf("store %s %s: %w", c.view.kind.name, change.Name, err))
		return
	}
	c.reached(change.Revision)
	for _, r := range c.view.registrations {
		r.notify(change.Name, known, object, nil)
	}
}

func (c *contents) remove(change feed.Change) {
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	if c.view.contents != c || c.view.closed {
		return
	}
	defer c.reached(change.Revision)
	known := c.get(change.Name)
	if known == nil {
		return
	}
	if err := c.store.Delete(known); err != nil {
		c.view.owner.fail(fmt.Errorf("delete %s %s: %w", c.view.kind.name, change.Name, err))
		return
	}
	if len(c.view.registrations) == 0 {
		return
	}
	// Handlers get the revision in which the object is absent.
	last := known.(runtime.Object).DeepCopyObject().(metav1.Object)
	last.SetResourceVersion(strconv.FormatInt(change.Revision, 10))
	for _, r := range c.view.registrations {
		r.notify(change.Name, known, nil, last)
	}
}

// reached records a revision. The records of a list are in no order, so a list
// counts only when it is complete.
func (c *contents) reached(revision int64) {
	if c.view.current.Load() == c && revision > c.revision.Load() {
		c.revision.Store(revision)
	}
}
