// Package plugintest checks that a validator keeps the contract of package plugins. An author calls [Run] from a test.
package plugintest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
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
	// Registration is the plugin. Its InitFn is called for each check, so that none sees what another has left.
	Registration plugins.Registration
	// Cache and Client are what the validator finds in its environment. Leave out what it does not use.
	Cache  cache.Cache
	Client client.Client
	// Tenants are two tenants that the validator knows.
	Tenants [2]plugins.Tenant
	// Object is a new copy of a kind that the validator watches, as one for the first tenant, and Kind its kind.
	Object client.Object
	Kind   schema.GroupVersionKind
	// Limit is how many copies such as Object a tenant may have, for a validator that limits their number; otherwise 0.
	Limit int
}

// check is one part of the contract. It says what a validator does wrong.
type check struct {
	name string
	run  func(context.Context, plugins.Validator, Case) error
}

// checks are what a syncer relies on, whatever the rules of the validator are.
func checks() []check {
	return []check{
		{"says what it is", names},
		{"locks", locks},
		{"answers", answers},
		{"gives up with its context", givesUp},
		{"serves two tenants at a time", serves},
		{"keeps to its limit", limit},
	}
}

// Run checks the contract. Let the race detector run, too: it sees what a validator's goroutines do to each other.
func Run(t *testing.T, c Case) {
	t.Helper()
	for _, one := range checks() {
		t.Run(one.name, func(t *testing.T) {
			if err := c.check(t.Context(), one); err != nil {
				t.Error(err)
			}
		})
	}
}

// check makes the validator, runs it if it works by itself, and checks one part of the contract.
func (c Case) check(ctx context.Context, one check) error {
	v, err := c.make()
	if err != nil {
		return err
	}
	runnable, works := v.(manager.Runnable)
	if !works {
		return one.run(ctx, v, c)
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- runnable.Start(working) }()
	wrong := one.run(ctx, v, c)
	stop()
	select {
	case err := <-ended:
		if err != nil {
			err = fmt.Errorf("Start: %w", err)
		}
		return errors.Join(wrong, err)
	case <-time.After(soon):
		return errors.Join(wrong, errors.New("Start does not end with its context"))
	}
}

// make does what a syncer does when it starts.
func (c Case) make() (plugins.Validator, error) {
	registry := &plugins.Registry{}
	if err := registry.Register(c.Registration); err != nil {
		return nil, fmt.Errorf("it cannot be registered: %w", err)
	}
	v, err := c.Registration.InitFn(plugins.Environment{
		Cache: c.Cache, Client: c.Client, Logger: logr.Discard(), Registerer: prometheus.NewRegistry(),
		Retry: func(string) {}, Serves: func(string) bool { return true },
	})
	if err == nil && v == nil {
		err = errors.New("it makes no validator")
	}
	if err != nil {
		return nil, fmt.Errorf("InitFn: %w", err)
	}
	return v, nil
}

// request asks for a new copy of a name; the name of the case's object if it is empty.
func (c Case) request(tenant int, name string) plugins.Request {
	obj := c.Object.DeepCopyObject().(client.Object)
	if name != "" {
		obj.SetName(name)
	}
	return plugins.Request{Tenant: c.Tenants[tenant], Kind: c.Kind, Object: obj}
}

// ask does what a syncer does for one object: it locks the tenant, asks, writes, and tells how that ended.
func ask(ctx context.Context, v plugins.Validator, r plugins.Request, write func() error) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	locker := v.Locker(r.Tenant.Key)
	if locker == nil {
		return fmt.Errorf("tenant %s has no lock", r.Tenant.Key)
	}
	if err := locker.Lock(ctx); err != nil {
		return fmt.Errorf("locking tenant %s: %w", r.Tenant.Key, err)
	}
	defer locker.Unlock()
	if err := validate(ctx, v, r); err != nil {
		return err
	}
	err := write()
	if accountant, counts := v.(plugins.Accountant); counts {
		accountant.Settled(r, err)
	}
	return err
}

// validate asks, and makes an error of a panic.
func validate(ctx context.Context, v plugins.Validator, r plugins.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panics: %v", p)
		}
	}()
	return v.Validate(ctx, r)
}

// written is a write that ends well.
func written() error { return nil }

// isRejection says whether an answer is no.
func isRejection(err error) bool {
	return errors.As(err, new(*plugins.RejectionError))
}
