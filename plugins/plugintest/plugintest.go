// Package plugintest checks that a validator fulfils the contract of package
// plugins. Authors call [Run] from a test.
package plugintest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/internal/contract"
)

// soon is the time limit of each call of a validator.
const soon = 10 * time.Second

// Case describes a validator to Run.
type Case struct {
	// Registration is the plugin. Its InitFn is called for each check, so that
	// no check sees the state of another.
	Registration plugins.Registration
	// Cache and Client are those of the validator's environment. Omit those
	// that it does not use.
	Cache  cache.Cache
	Client client.Client
	// Tenants are two tenants that the validator knows.
	Tenants [2]plugins.Tenant
	// Object is a new copy of the first tenant, of a kind that the validator
	// watches, and Kind its kind.
	Object client.Object
	Kind   schema.GroupVersionKind
	// Limit is how many copies like Object a tenant may have, for a validator
	// that limits their number; otherwise 0.
	Limit int
}

// subject is a validator under test.
type subject struct {
	plugins.Validator
	Case
}

// part is a part of the contract.
func part(name string, run func(context.Context, plugins.Validator, Case) error) contract.Check[subject] {
	return contract.Part(name, func(ctx context.Context, s subject) error { return run(ctx, s.Validator, s.Case) })
}

// checks are the parts of the contract that a syncer relies on.
func checks() []contract.Check[subject] {
	return []contract.Check[subject]{
		part("names itself and its kinds", names),
		part("locks", locks),
		part("answers", answers),
		part("returns when its context is done", returns),
		part("serves two tenants at a time", serves),
		part("enforces its limit", limit),
	}
}

// Run checks the contract. Run it with the race detector, to check the
// validator's goroutines too.
func Run(t *testing.T, c Case) {
	t.Helper()
	contract.Run(t, checks(), c.check)
}

// check creates the validator, starts it if it is a runnable, and verifies one
// part of the contract.
func (c Case) check(ctx context.Context, one contract.Check[subject]) error {
	v, err := c.make()
	if err != nil {
		return err
	}
	runnable, works := v.(manager.Runnable)
	if !works {
		return one.Run(ctx, subject{v, c})
	}
	working, cancel := context.WithCancel(ctx)
	stop := contract.Start(working, cancel, runnable, soon)
	wrong := one.Run(ctx, subject{v, c})
	return errors.Join(wrong, stop())
}

// make creates the validator as a syncer does when it starts.
func (c Case) make() (plugins.Validator, error) {
	registry := &plugins.Registry{}
	if err := registry.Register(c.Registration); err != nil {
		return nil, fmt.Errorf("register the plugin: %w", err)
	}
	v, err := c.Registration.InitFn(plugins.Environment{
		Cache: c.Cache, Client: c.Client, Kinds: []plugins.Kind{KindOf(c.Kind, c.Object)},
		Logger: logr.Discard(), Registerer: prometheus.NewRegistry(),
		Retry: func(string) {}, Serves: func(string) bool { return true },
	})
	if err == nil && v == nil {
		err = errors.New("it returns no validator")
	}
	if err != nil {
		return nil, fmt.Errorf("InitFn: %w", err)
	}
	return v, nil
}

// KindOf returns a kind as a syncer describes it to plugins. Its cache holds
// objects of the type of obj.
func KindOf(kind schema.GroupVersionKind, obj client.Object) plugins.Kind {
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if metadata, ok := empty.(*metav1.PartialObjectMetadata); ok {
		metadata.SetGroupVersionKind(kind)
	}
	return plugins.Kind{GroupVersionKind: kind, Resource: resource.GroupResource(), Object: empty}
}

// request returns a request for a new copy with that name; empty for the name
// of the case's object.
func (c Case) request(tenant int, name string) plugins.Request {
	obj := c.Object.DeepCopyObject().(client.Object)
	if name != "" {
		obj.SetName(name)
	}
	return plugins.Request{Tenant: c.Tenants[tenant], Kind: c.Kind, Object: obj}
}

// ask does what a syncer does for one object: it locks the tenant, validates,
// writes, and reports the result.
func ask(ctx context.Context, v plugins.Validator, r plugins.Request, write func() error) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	locker := v.Locker(r.Tenant.Key)
	if locker == nil {
		return fmt.Errorf("tenant %s has no lock", r.Tenant.Key)
	}
	if err := locker.Lock(ctx); err != nil {
		return fmt.Errorf("lock tenant %s: %w", r.Tenant.Key, err)
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

// validate returns a panic as an error.
func validate(ctx context.Context, v plugins.Validator, r plugins.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panics: %v", p)
		}
	}()
	return v.Validate(ctx, r)
}

// written is a write that succeeds.
func written() error { return nil }
