package plugintest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/plugins"
)

const slots = 2

// good is a validator that fulfils the contract: a tenant may have two pods,
// and they must have a name.
type good struct {
	plugins.TenantLocks

	mu    sync.Mutex
	taken map[string]int
}

func newGood() *good { return &good{taken: map[string]int{}} }

func (*good) Name() string                          { return "good" }
func (*good) Kinds() []schema.GroupKind             { return []schema.GroupKind{{Kind: "Pod"}} }
func (g *good) Locker(tenant string) plugins.Locker { return g.Of(tenant) }

func (g *good) Validate(ctx context.Context, r plugins.Request) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.Object.GetName() == "":
		return plugins.Reject("pods must have a name")
	case r.Was == nil && g.taken[r.Tenant.Key] >= slots:
		return plugins.Reject("pods: used %d, asked 1, hard %d", g.taken[r.Tenant.Key], slots)
	}
	return nil
}

func (g *good) Settled(r plugins.Request, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Was == nil && (err == nil || plugins.Undecided(err)) {
		g.taken[r.Tenant.Key]++
	}
}

func caseOf(v func() plugins.Validator, name string) Case {
	return Case{
		Registration: plugins.Registration{ID: "test", InitFn: func(plugins.Environment) (plugins.Validator, error) { return v(), nil }},
		Tenants:      [2]plugins.Tenant{{Key: "red"}, {Key: "blue"}},
		Object:       &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red-shop", Name: name, Labels: map[string]string{"app": "web"}}},
		Kind:         corev1.SchemeGroupVersion.WithKind("Pod"),
		Limit:        slots,
	}
}

func TestAGoodValidatorPasses(t *testing.T) {
	for _, name := range []string{"web", ""} {
		Run(t, caseOf(func() plugins.Validator { return newGood() }, name))
	}
}

// bad is good except for one method.
type bad struct {
	*good

	name     func() string
	kinds    []schema.GroupKind
	locker   func(tenant string) plugins.Locker
	validate func(ctx context.Context, r plugins.Request) error
	settled  func(r plugins.Request, err error)
}

func (b *bad) Name() string {
	if b.name != nil {
		return b.name()
	}
	return b.good.Name()
}

func (b *bad) Kinds() []schema.GroupKind {
	if b.kinds != nil {
		return b.kinds
	}
	return b.good.Kinds()
}

func (b *bad) Locker(tenant string) plugins.Locker {
	if b.locker != nil {
		return b.locker(tenant)
	}
	return b.good.Locker(tenant)
}

func (b *bad) Validate(ctx context.Context, r plugins.Request) error {
	if b.validate != nil {
		return b.validate(ctx, r)
	}
	return b.good.Validate(ctx, r)
}

func (b *bad) Settled(r plugins.Request, err error) {
	if b.settled != nil {
		b.settled(r, err)
		return
	}
	b.good.Settled(r, err)
}

// stubborn is a validator whose Start does not return.
type stubborn struct{ *good }

func (stubborn) Start(context.Context) error { time.Sleep(time.Hour); return nil }

// broken is a validator whose Start fails.
type broken struct{ *good }

func (broken) Start(context.Context) error { return errors.New("no such cache") }

// open is a lock that excludes nothing.
type open struct{}

func (open) Lock(context.Context) error { return nil }
func (open) Unlock()                    {}

// of returns a validator with one change.
func of(change func(*bad)) func() plugins.Validator {
	return func() plugins.Validator {
		b := &bad{good: newGood()}
		change(b)
		return b
	}
}

// TestBadValidatorsAreFound checks that each violation is found by its check.
func TestBadValidatorsAreFound(t *testing.T) {
	pod := schema.GroupKind{Kind: "Pod"}
	for name, tc := range map[string]struct {
		make        func() plugins.Validator
		check, want string
	}{
		"nameless":        {of(func(b *bad) { b.name = func() string { return "" } }), "names itself and its kinds", "it has no name"},
		"repeats itself":  {of(func(b *bad) { b.kinds = []schema.GroupKind{pod, pod} }), "names itself and its kinds", "named twice"},
		"watches nothing": {of(func(b *bad) { b.kinds = []schema.GroupKind{} }), "names itself and its kinds", "not among those that it watches"},
		"makes nothing":   {func() plugins.Validator { return nil }, "answers", "it returns no validator"},
		"without locks": {of(func(b *bad) {
			b.locker = func(string) plugins.Locker { return nil }
		}), "locks", "tenant red has no lock"},
		"an open lock": {of(func(b *bad) {
			b.locker = func(string) plugins.Locker { return open{} }
		}), "locks", "a tenant can be locked twice"},
		"a new lock each time": {of(func(b *bad) {
			b.locker = func(string) plugins.Locker { return new(plugins.TenantLocks).Of("any") }
		}), "locks", "a tenant can be locked twice"},
		"one lock for all": {of(func(b *bad) {
			b.locker = func(string) plugins.Locker { return b.Of("all") }
		}), "locks", "a locked tenant blocks another"},
		"changes the object": {of(func(b *bad) {
			b.validate = func(_ context.Context, r plugins.Request) error { r.Object.GetLabels()["seen"] = "yes"; return nil }
		}), "answers", "it changes the object:"},
		"changes what was": {of(func(b *bad) {
			b.validate = func(_ context.Context, r plugins.Request) error {
				if r.Was != nil {
					r.Was.SetName("seen")
				}
				return nil
			}
		}), "answers", "it changes the object as it was:"},
		"changes the object when it settles": {of(func(b *bad) {
			b.settled = func(r plugins.Request, _ error) { r.Object.SetAnnotations(map[string]string{"settled": "yes"}) }
		}), "answers", "it changes the object:"},
		"a rejection without a message": {of(func(b *bad) {
			b.validate = func(context.Context, plugins.Request) error { return &plugins.RejectionError{} }
		}), "answers", "has no message"},
		"cannot decide": {of(func(b *bad) {
			b.validate = func(context.Context, plugins.Request) error { return errors.New("no connection") }
		}), "answers", "it cannot decide: no connection"},
		"panics": {of(func(b *bad) {
			b.validate = func(context.Context, plugins.Request) error { panic("oh") }
		}), "answers", "it panics: oh"},
		"ignores its context": {of(func(b *bad) {
			b.validate = func(context.Context, plugins.Request) error { time.Sleep(time.Hour); return nil }
		}), "returns when its context is done", "it does not return when its context is done"},
		"waits for the other tenant": {of(func(b *bad) {
			b.locker = func(string) plugins.Locker { return b.Of("all") }
			b.validate = func(context.Context, plugins.Request) error { time.Sleep(time.Second); return nil }
		}), "serves two tenants at a time", "lock tenant"},
		"allows more than its limit": {of(func(b *bad) {
			b.validate = func(_ context.Context, r plugins.Request) error {
				if b.taken[r.Tenant.Key] > slots {
					return plugins.Reject("pods")
				}
				return nil
			}
		}), "enforces its limit", "3 concurrent writes were allowed, want 2"},
		"allows less": {of(func(b *bad) {
			b.validate = func(context.Context, plugins.Request) error { return plugins.Reject("pods") }
		}), "enforces its limit", "no copy is allowed"},
		"ignores writes that are not in the cache yet": {of(func(b *bad) {
			b.settled = func(plugins.Request, error) {}
		}), "enforces its limit", "26 concurrent writes were allowed"},
		"ignores writes without an answer": {of(func(b *bad) {
			b.settled = func(r plugins.Request, err error) {
				if err == nil {
					b.good.Settled(r, nil)
				}
			}
		}), "enforces its limit", "concurrent writes were allowed, want 2"},
		"counts rejected writes": {of(func(b *bad) {
			b.settled = func(r plugins.Request, _ error) { b.good.Settled(r, nil) }
		}), "enforces its limit", "0 concurrent writes were allowed"},
		"counts all tenants as one": {of(func(b *bad) {
			b.validate = func(ctx context.Context, r plugins.Request) error {
				r.Tenant.Key = "all"
				return b.good.Validate(ctx, r)
			}
			b.settled = func(r plugins.Request, err error) { r.Tenant.Key = "all"; b.good.Settled(r, err) }
		}), "enforces its limit", "copies of one tenant count for another"},
		"does not end": {func() plugins.Validator { return stubborn{newGood()} }, "answers", "Start does not return"},
		"cannot work":  {func() plugins.Validator { return broken{newGood()} }, "answers", "Start: no such cache"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(2 * time.Hour) // until all blocked goroutines have returned
				for _, one := range checks() {
					if one.Name != tc.check {
						continue
					}
					err := caseOf(tc.make, "web").check(t.Context(), one)
					if err == nil || !strings.Contains(err.Error(), tc.want) {
						t.Errorf("got %v, want %q", err, tc.want)
					}
					return
				}
				t.Errorf("no check %q", tc.check)
			})
		})
	}
}
