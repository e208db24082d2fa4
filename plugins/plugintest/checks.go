package plugintest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// names checks the name and the kinds of a validator.
func names(_ context.Context, v plugins.Validator, c Case) error {
	var wrong []error
	if v.Name() == "" {
		wrong = append(wrong, errors.New("it has no name"))
	}
	seen := map[schema.GroupKind]bool{}
	for _, kind := range v.Kinds() {
		if seen[kind] {
			wrong = append(wrong, fmt.Errorf("kind %s is named twice", kind))
		}
		seen[kind] = true
	}
	if !seen[c.Kind.GroupKind()] {
		wrong = append(wrong, fmt.Errorf("kind %s is not among those that it watches", c.Kind.GroupKind()))
	}
	return errors.Join(wrong...)
}

// locks checks that a tenant's lock is exclusive, always the same, and not
// shared with another tenant.
func locks(ctx context.Context, v plugins.Validator, c Case) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	for _, tenant := range c.Tenants {
		if v.Locker(tenant.Key) == nil {
			return fmt.Errorf("tenant %s has no lock", tenant.Key)
		}
	}
	return errors.Join(excludes(ctx, v, c), crowd(ctx, v, c.Tenants[0].Key))
}

// excludes checks which locks a held lock blocks.
func excludes(ctx context.Context, v plugins.Validator, c Case) error {
	first, second := c.Tenants[0].Key, c.Tenants[1].Key
	locker := v.Locker(first)
	if err := locker.Lock(ctx); err != nil {
		return fmt.Errorf("lock a free lock: %w", err)
	}
	defer locker.Unlock()
	var wrong []error
	ended, end := context.WithCancel(ctx)
	end()
	if err := v.Locker(first).Lock(ended); err == nil {
		wrong = append(wrong, errors.New("a tenant can be locked twice"))
	}
	other := v.Locker(second)
	if err := other.Lock(ctx); err != nil {
		wrong = append(wrong, fmt.Errorf("a locked tenant blocks another: %w", err))
	} else {
		other.Unlock()
	}
	return errors.Join(wrong...)
}

// crowd checks that of many goroutines that want a lock, each gets it, one at a
// time.
func crowd(ctx context.Context, v plugins.Validator, tenant string) error {
	const many = 50
	var inside, most, total atomic.Int32
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			locker := v.Locker(tenant)
			if locker.Lock(ctx) != nil {
				return
			}
			defer locker.Unlock()
			now := inside.Add(1)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
			total.Add(1)
			inside.Add(-1)
		})
	}
	all.Wait()
	if most.Load() != 1 || total.Load() != many {
		return fmt.Errorf("%d of %d had the lock, %d at a time", total.Load(), many, most.Load())
	}
	return nil
}

// answers checks that Validate changes nothing and that a rejection has a
// message, for a creation and for a change.
func answers(ctx context.Context, v plugins.Validator, c Case) error {
	var wrong []error
	for _, was := range []client.Object{nil, c.request(0, "").Object} {
		r := c.request(0, "")
		r.Was = was
		object, before := r.Object.DeepCopyObject(), c.request(0, "").Object
		err := ask(ctx, v, r, written)
		if no, ok := errors.AsType[*plugins.RejectionError](err); ok && no.Message == "" {
			wrong = append(wrong, errors.New("a rejection has no message"))
		} else if err != nil && !ok {
			wrong = append(wrong, fmt.Errorf("it cannot decide: %w", err))
		}
		if diff := cmp.Diff(object, r.Object); diff != "" {
			wrong = append(wrong, fmt.Errorf("it changes the object:\n%s", diff))
		}
		if was != nil {
			if diff := cmp.Diff(before, was); diff != "" {
				wrong = append(wrong, fmt.Errorf("it changes the object as it was:\n%s", diff))
			}
		}
	}
	return errors.Join(wrong...)
}

// returns checks that Validate returns when its context is done, with any
// result.
func returns(ctx context.Context, v plugins.Validator, c Case) error {
	ended, end := context.WithCancel(ctx)
	end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = validate(ended, v, c.request(0, ""))
	}()
	select {
	case <-done:
		return nil
	case <-time.After(soon):
		return errors.New("it does not return when its context is done")
	}
}

// serves checks that a tenant is served while another's lock is held, and many
// tenants concurrently.
func serves(ctx context.Context, v plugins.Validator, c Case) error {
	ctx, cancel := context.WithTimeout(ctx, 2*soon)
	defer cancel()
	wrong := make(chan error, 1)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			tenant := i % len(c.Tenants)
			if err := ask(ctx, v, c.request(tenant, fmt.Sprintf("copy-%d", i)), written); err != nil && plugins.AsRejection(err) == nil {
				select {
				case wrong <- err:
				default:
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-wrong:
		return fmt.Errorf("serve two tenants: %w", err)
	default:
		return nil
	}
}
