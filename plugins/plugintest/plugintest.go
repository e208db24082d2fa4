// Package plugintest checks that a validator keeps the contract of package plugins. An author calls [Run] from a test.
package plugintest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// soon is how long anything of a validator may take here.
const soon = 10 * time.Second

// Case is what Run has to know of a validator.
type Case struct {
	// Registration is the plugin.
	Registration plugins.Registration
	// Cache and Client are what the validator finds in its environment. Leave out what it does not use.
	Cache  cache.Cache
	Client client.Client
	// Tenants are two tenants that the validator knows.
	Tenants [2]plugins.Tenant
	// Object is a new copy of a kind that the validator watches, as one for the first tenant, and Kind its kind.
	Object client.Object
	Kind   schema.GroupVersionKind
}

// Run checks the contract: what a syncer relies on, whatever the rules of the validator are.
func Run(t *testing.T, c Case) {
	t.Helper()
	registry := &plugins.Registry{}
	if err := registry.Register(c.Registration); err != nil {
		t.Fatalf("it cannot be registered: %v", err)
	}
	v, err := c.Registration.InitFn(plugins.Environment{
		Cache: c.Cache, Client: c.Client, Logger: logr.Discard(), Registerer: prometheus.NewRegistry(),
		Retry: func(string) {}, Serves: func(string) bool { return true },
	})
	if err != nil {
		t.Fatalf("InitFn: %v", err)
	}
	work(t, v)
	t.Run("names", func(t *testing.T) { names(t, v, c) })
	t.Run("locks", func(t *testing.T) { locks(t, v, c) })
	t.Run("answers", func(t *testing.T) { answers(t, v, c) })
	t.Run("gives up with its context", func(t *testing.T) { givesUp(t, v, c) })
	t.Run("serves two tenants at a time", func(t *testing.T) { serves(t, v, c) })
}

// work runs a validator that is a runnable, until the test ends.
func work(t *testing.T, v plugins.Validator) {
	t.Helper()
	runnable, works := v.(manager.Runnable)
	if !works {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runnable.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Start: %v", err)
			}
		case <-time.After(soon):
			t.Error("Start does not end with its context")
		}
	})
}

// names checks what a validator says of itself.
func names(t *testing.T, v plugins.Validator, c Case) {
	t.Helper()
	if v.Name() == "" {
		t.Error("it has no name")
	}
	seen := map[schema.GroupKind]bool{}
	for _, kind := range v.Kinds() {
		if seen[kind] {
			t.Errorf("kind %s is named twice", kind)
		}
		seen[kind] = true
	}
	if !seen[c.Kind.GroupKind()] {
		t.Errorf("kind %s is not among those that it watches", c.Kind.GroupKind())
	}
}

// locks checks that a tenant's lock keeps others out, is always the same, and is no other tenant's.
func locks(t *testing.T, v plugins.Validator, c Case) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	ended, end := context.WithCancel(ctx)
	end()
	locker := v.Locker(c.Tenants[0].Key)
	if locker == nil {
		t.Fatal("a tenant has no lock")
	}
	if err := locker.Lock(ctx); err != nil {
		t.Fatalf("a free lock: %v", err)
	}
	if err := v.Locker(c.Tenants[0].Key).Lock(ended); err == nil {
		t.Error("a tenant can be locked twice")
	}
	if err := v.Locker(c.Tenants[1].Key).Lock(ctx); err != nil {
		t.Errorf("while one tenant is locked, so is another: %v", err)
	} else {
		v.Locker(c.Tenants[1].Key).Unlock()
	}
	locker.Unlock()
	var inside, most, total atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			l := v.Locker(c.Tenants[0].Key)
			if l.Lock(ctx) != nil {
				return
			}
			defer l.Unlock()
			most.Store(max(most.Load(), inside.Add(1)))
			total.Add(1)
			inside.Add(-1)
		})
	}
	all.Wait()
	if most.Load() != 1 || total.Load() != 50 {
		t.Errorf("%d of 50 had the lock, %d at a time", total.Load(), most.Load())
	}
}

// answers checks that validating changes nothing and that a rejection can be read.
func answers(t *testing.T, v plugins.Validator, c Case) {
	t.Helper()
	r := c.request(0)
	for _, was := range []client.Object{nil, r.Object.DeepCopyObject().(client.Object)} {
		r.Was = was
		before := r.Object.DeepCopyObject()
		err := ask(t.Context(), v, r)
		if no := (*plugins.RejectionError)(nil); errors.As(err, &no) {
			if no.Message == "" {
				t.Error("a rejection gives no reason")
			}
		} else if err != nil {
			t.Errorf("it cannot tell: %v", err)
		}
		if accountant, counts := v.(plugins.Accountant); counts && err == nil {
			accountant.Settled(r, context.DeadlineExceeded)
			accountant.Settled(r, nil)
		}
		if diff := cmp.Diff(before, r.Object); diff != "" {
			t.Errorf("it changes the object:\n%s", diff)
		}
	}
}

// givesUp checks that a validator ends when its time is over, with whatever answer.
func givesUp(t *testing.T, v plugins.Validator, c Case) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = v.Validate(ended, c.request(0))
	}()
	select {
	case <-done:
	case <-time.After(soon):
		t.Error("it goes on after its context has ended")
	}
}

// serves checks, with the race detector if the test runs with it, that tenants can be served at the same time.
func serves(t *testing.T, v plugins.Validator, c Case) {
	t.Helper()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() { _ = ask(t.Context(), v, c.request(i%len(c.Tenants))) })
	}
	all.Wait()
}

// ask does what a syncer does.
func ask(ctx context.Context, v plugins.Validator, r plugins.Request) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	locker := v.Locker(r.Tenant.Key)
	if err := locker.Lock(ctx); err != nil {
		return err
	}
	defer locker.Unlock()
	return v.Validate(ctx, r)
}

func (c Case) request(tenant int) plugins.Request {
	return plugins.Request{Tenant: c.Tenants[tenant], Kind: c.Kind, Object: c.Object.DeepCopyObject().(client.Object)}
}
