package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

var (
	// ErrEnded means that the feed has ended.
	ErrEnded = errors.New("the feed has ended")
	// ErrClosed means that the subscription was closed.
	ErrClosed = errors.New("the subscription is closed")
)

// Feed dispatches the changes of one etcd.
type Feed struct {
	etcd Source
	// watch is used by Run alone.
	watch Watch
	taps  []Tap

	// reading keeps the feed from ending during a read of etcd.
	reading sync.RWMutex
	ended   bool

	mu          sync.RWMutex
	subscribers map[string]map[string][]*Subscription // by tenant and resource
	observers   []*observer
}

// New returns a feed of an etcd. Subscriptions receive changes while it runs,
// until ctx ends.
func New(ctx context.Context, etcd Source) (*Feed, error) {
	f := &Feed{etcd: etcd, subscribers: map[string]map[string][]*Subscription{}}
	if err := f.open(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// open begins a watch of all revisions from the next one on.
func (f *Feed) open(ctx context.Context) (err error) {
	if f.watch, err = f.etcd.Watch(ctx, keyspace.Root); err != nil {
		return fmt.Errorf("watch etcd: %w", err)
	}
	return nil
}

// keyRange returns the range of the keys below a prefix, which ends in a slash.
func keyRange(prefix string) (begin, end []byte) {
	end = []byte(prefix)
	end[len(end)-1]++
	return []byte(prefix), end
}

// Run dispatches changes until its context ends, which is not an error. Etcd
// must not stop before Run has returned.
func (f *Feed) Run(ctx context.Context) error {
	defer f.end()
	for {
		events, err := f.watch.Next(ctx)
		if errors.Is(err, ErrMissed) {
			err = f.restart(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watch etcd: %w", err)
		}
		for _, tap := range f.taps {
			tap.Apply(events)
		}
		f.dispatch(events)
	}
}

// end waits for the reads of etcd in progress, which are short.
func (f *Feed) end() {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.ended = true
	if f.watch != nil {
		f.watch.Close()
	}
}

// restart continues after changes that the feed has not seen. Lists come after
// the begin of the new watch, so that there is no gap.
func (f *Feed) restart(ctx context.Context) error {
	f.watch.Close()
	if err := f.open(ctx); err != nil {
		return err
	}
	for _, tap := range f.taps {
		tap.Missed()
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, resources := range f.subscribers {
		for _, subscriptions := range resources {
			for _, s := range subscriptions {
				s.lose()
				s.wake()
			}
		}
	}
	f.notify("", "", Missed)
	return nil
}

// dispatch must not allocate more than necessary for changes that have no
// subscriber: they are most.
func (f *Feed) dispatch(events []mvccpb.Event) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for i := range events {
		event := &events[i]
		tenant, below, ok := keyspace.Split(event.Kv.Key)
		if !ok {
			continue
		}
		resources := f.subscribers[tenant]
		if resources == nil && len(f.observers) == 0 {
			continue
		}
		resource, name, ok := keyspace.SplitRecord(below)
		if !ok {
			continue
		}
		if subscriptions := resources[string(resource)]; len(subscriptions) > 0 {
			change := changeOf(event, string(name))
			for _, s := range subscriptions {
				s.put(change)
			}
		}
		if len(f.observers) > 0 {
			f.notify(tenant, string(resource), kindOf(event))
		}
	}
}

func changeOf(event *mvccpb.Event, name string) Change {
	if event.Type == mvccpb.DELETE {
		return Change{Name: name, Revision: event.Kv.ModRevision}
	}
	return recordOf(event.Kv, name)
}

func recordOf(kv *mvccpb.KeyValue, name string) Change {
	if kv.Value == nil {
		return Change{Name: name, Value: []byte{}, Revision: kv.ModRevision} // no deletion
	}
	return Change{Name: name, Value: kv.Value, Revision: kv.ModRevision}
}

// Subscribe returns a subscription to a resource of a tenant. A resource is
// named as in [keyspace.RecordPrefix]. The function wake is called when there
// are changes to receive, in the goroutine of Run: it must not block.
func (f *Feed) Subscribe(tenant, resource string, wake func()) (*Subscription, error) {
	prefix, err := keyspace.RecordPrefix(tenant, resource)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", resource, err)
	}
	s := &Subscription{
		feed: f, tenant: tenant, resource: resource, prefix: prefix, wake: wake,
		pending: map[string]Change{}, lost: true,
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	resources := f.subscribers[tenant]
	if resources == nil {
		resources = map[string][]*Subscription{}
		f.subscribers[tenant] = resources
	}
	resources[resource] = append(resources[resource], s)
	return s, nil
}

func (f *Feed) unsubscribe(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resources := f.subscribers[s.tenant]
	rest := slices.DeleteFunc(slices.Clone(resources[s.resource]), func(other *Subscription) bool { return other == s })
	if len(rest) > 0 {
		resources[s.resource] = rest
		return
	}
	delete(resources, s.resource)
	if len(resources) == 0 {
		delete(f.subscribers, s.tenant)
	}
}

// Count returns the number of records of a resource in a tenant. It reads no
// values.
func (f *Feed) Count(ctx context.Context, tenant, resource string) (int, error) {
	prefix, err := keyspace.RecordPrefix(tenant, resource)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", resource, err)
	}
	begin, end := keyRange(prefix)
	result, err := f.read(ctx, begin, end, ReadOptions{CountOnly: true})
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", resource, err)
	}
	return result.Count, nil
}

func (f *Feed) read(ctx context.Context, begin, end []byte, options ReadOptions) (*Page, error) {
	f.reading.RLock()
	defer f.reading.RUnlock()
	if f.ended {
		return nil, ErrEnded
	}
	return f.etcd.Read(ctx, begin, end, options)
}
