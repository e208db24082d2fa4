package validation

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/plugins"
)

const patience = time.Second

var (
	red, blue = plugins.Tenant{Key: "red"}, plugins.Tenant{Key: "blue"}
	pods      = []schema.GroupKind{{Kind: "Pod"}}
	web       = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red-shop", Name: "web"}}
)

// answering is a validator with configurable answers.
type answering struct {
	plugins.TenantLocks

	validate func(ctx context.Context, tenant string) error
	locker   func(tenant string) plugins.Locker
	mu       sync.Mutex
	settled  []error
}

func (a *answering) Name() string              { return "test" }
func (a *answering) Kinds() []schema.GroupKind { return pods }
func (a *answering) Validate(ctx context.Context, r plugins.Request) error {
	return a.validate(ctx, r.Tenant.Key)
}

func (a *answering) Locker(tenant string) plugins.Locker {
	if a.locker != nil {
		return a.locker(tenant)
	}
	return a.Of(tenant)
}

func (a *answering) Settled(_ plugins.Request, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settled = append(a.settled, err)
}

func agree(context.Context, string) error { return nil }

// gateOf returns a gate of validators whose IDs are a, b and so on.
func gateOf(t *testing.T, failOpen bool, validators ...plugins.Validator) *Gate {
	t.Helper()
	var registrations []plugins.Registration
	for i, v := range validators {
		registrations = append(registrations, plugins.Registration{
			ID:     string(rune('a' + i)),
			InitFn: func(plugins.Environment) (plugins.Validator, error) { return v, nil },
		})
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(clientgoscheme.Scheme, registrations, plugins.Environment{},
		Options{Timeout: patience, FailOpen: failOpen, Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// try writes a pod of a tenant and reports whether it was written.
func try(ctx context.Context, g *Gate, tenant plugins.Tenant) (written bool, err error) {
	err = g.Write(ctx, tenant, web, nil, func(context.Context) error {
		written = true
		return nil
	})
	return written, err
}

func TestWhatNobodyWatchesIsWritten(t *testing.T) {
	g := gateOf(t, false, &answering{validate: func(context.Context, string) error { return errors.New("was called") }})
	written := false
	err := g.Write(t.Context(), red, &corev1.ConfigMap{}, nil, func(context.Context) error { written = true; return nil })
	if err != nil || !written {
		t.Errorf("written %t, %v", written, err)
	}
}

// TestATenantIsLockedFromTheQuestionToTheEndOfTheWrite checks the lock, and
// that other tenants are not locked (QV-8).
func TestATenantIsLockedFromTheQuestionToTheEndOfTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, false, &answering{validate: agree})
		release, firstDone := make(chan struct{}), make(chan error, 1)
		var order []string
		go func() {
			firstDone <- g.Write(t.Context(), red, web, nil, func(context.Context) error {
				<-release
				order = append(order, "first")
				return nil
			})
		}()
		synctest.Wait()
		if written, err := try(t.Context(), g, blue); !written || err != nil {
			t.Errorf("another tenant: written %t, %v", written, err)
		}
		secondDone := make(chan error, 1)
		go func() {
			secondDone <- g.Write(t.Context(), red, web, nil, func(context.Context) error { order = append(order, "second"); return nil })
		}()
		synctest.Wait()
		close(release)
		if err := errors.Join(<-firstDone, <-secondDone); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"first", "second"}, order); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWhoeverWaitsTooLongForTheLockTriesAgain checks that a write that cannot
// lock its tenant in time is retried, and is not a failure.
func TestWhoeverWaitsTooLongForTheLockTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, true, &answering{validate: agree})
		release, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- g.Write(t.Context(), red, web, nil, func(context.Context) error { <-release; return nil })
		}()
		synctest.Wait()
		if written, err := try(t.Context(), g, red); written || !errors.Is(err, errBusy) {
			t.Errorf("written %t, %v", written, err)
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if written, err := try(t.Context(), g, red); !written || err != nil {
			t.Errorf("afterwards: written %t, %v", written, err)
		}
	})
}

func TestRejections(t *testing.T) {
	for name, tc := range map[string]struct {
		was  *corev1.Pod
		err  error
		want plugins.RejectionError
	}{
		"over a quota": {nil, plugins.Reject("pods: used %d", 3), plugins.RejectionError{
			Reason: "QuotaExceeded", Message: "cannot create pod due to exceeding quota limit: pods: used 3",
		}},
		"a change": {web, plugins.Reject("cpu"), plugins.RejectionError{
			Reason: "QuotaExceeded", Message: "cannot change pod due to exceeding quota limit: cpu",
		}},
		"a reason of its own": {nil, &plugins.RejectionError{Reason: "NotOnFridays", Message: "it is Friday"}, plugins.RejectionError{
			Reason: "NotOnFridays", Message: "cannot create pod: it is Friday",
		}},
		"no reason": {nil, &plugins.RejectionError{Message: "much"}, plugins.RejectionError{
			Reason: "QuotaExceeded", Message: "cannot create pod due to exceeding quota limit: much",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			first := &answering{validate: agree}
			g := gateOf(t, true, first, &answering{validate: func(context.Context, string) error { return tc.err }})
			write := func(context.Context) error { t.Error("it was written"); return nil }
			var err error
			if tc.was == nil {
				err = g.Write(t.Context(), red, web, nil, write)
			} else {
				err = g.Write(t.Context(), red, web, tc.was, write)
			}
			got, ok := errors.AsType[*plugins.RejectionError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Error(diff)
			}
			if len(first.settled) != 1 || plugins.Undecided(first.settled[0]) {
				t.Errorf("the validator that allowed it settled %v", first.settled)
			}
		})
	}
}

func TestWhoCountsIsToldHowTheWriteEnded(t *testing.T) {
	counting := &answering{validate: agree}
	g := gateOf(t, false, counting)
	lost := errors.New("connection lost")
	for _, result := range []error{nil, lost} {
		err := g.Write(t.Context(), red, web, nil, func(context.Context) error {
			if len(counting.settled) > 1 {
				t.Error("it settled before")
			}
			return result
		})
		if !errors.Is(err, result) {
			t.Errorf("got %v, want %v", err, result)
		}
	}
	if len(counting.settled) != 2 || counting.settled[0] != nil || !errors.Is(counting.settled[1], lost) {
		t.Errorf("it settled %v", counting.settled)
	}
}

// TestAWriteThatHasBegunIsFinished checks that a write is finished although its
// tenant is disengaged meanwhile, and that no other write begins.
func TestAWriteThatHasBegunIsFinished(t *testing.T) {
	counting := &answering{validate: agree}
	g := gateOf(t, false, counting)
	within, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ctx, letGo := context.WithCancel(within)
	err := g.Write(ctx, red, web, nil, func(ctx context.Context) error {
		letGo()
		if _, limited := ctx.Deadline(); !limited {
			t.Error("it may take for ever")
		}
		return ctx.Err()
	})
	if err != nil || len(counting.settled) != 1 || counting.settled[0] != nil {
		t.Errorf("got %v, and the validator settled %v", err, counting.settled)
	}
	if written, err := try(ctx, g, red); written || err == nil {
		t.Errorf("afterwards: written %t, %v", written, err)
	}
}

// TestALateRejectionIsARejection: an answer within the grace period counts, also if
// failures of validators admit objects.
func TestALateRejectionIsARejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, true, &answering{validate: func(context.Context, string) error {
			time.Sleep(patience + grace/2)
			return plugins.Reject("pods")
		}})
		written, err := try(t.Context(), g, red)
		if _, rejects := errors.AsType[*plugins.RejectionError](err); written || !rejects {
			t.Errorf("written %t, %v", written, err)
		}
	})
}

// TestBrokenValidators checks that a fault of a validator only blocks the
// object that it was called for or, if the admin chose so, nothing.
func TestBrokenValidators(t *testing.T) {
	for name, tc := range map[string]struct {
		validate func(ctx context.Context, tenant string) error
		result   string
	}{
		"one that panics":             {func(context.Context, string) error { panic("oh") }, panicked},
		"one that returns an error":   {func(context.Context, string) error { return errors.New("oh") }, failed},
		"one that waits too long":     {func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }, timeout},
		"one that ignores its limits": {func(context.Context, string) error { time.Sleep(10 * patience); return nil }, timeout},
	} {
		for _, failOpen := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					only := func(ctx context.Context, tenant string) error {
						if tenant == red.Key {
							return tc.validate(ctx, tenant)
						}
						return nil
					}
					g := gateOf(t, failOpen, &answering{validate: only})
					written, err := try(t.Context(), g, red)
					_, fails := errors.AsType[*FailureError](err)
					if written != failOpen || fails == failOpen {
						t.Errorf("written %t, %v", written, err)
					}
					if fails && strings.Contains(err.Error(), "oh") {
						t.Errorf("the tenant reads %v", err)
					}
					if n := testutil.ToFloat64(g.metrics.validations.WithLabelValues("a", tc.result)); n != 1 {
						t.Errorf("%v results %s were counted", n, tc.result)
					}
					if written, err := try(t.Context(), g, blue); !written || err != nil {
						t.Errorf("another tenant: written %t, %v", written, err)
					}
					time.Sleep(20 * patience)
				})
			})
		}
	}
}

// TestAValidatorThatHangsIsAskedOnce checks that it is not called again until
// it returns.
func TestAValidatorThatHangsIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		g := gateOf(t, false, &answering{validate: func(context.Context, string) error {
			if asked.Add(1) == 1 {
				<-release
			}
			return nil
		}})
		for range 20 {
			if written, _ := try(t.Context(), g, red); written {
				t.Fatal("it was written")
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("it was called %d times", n)
		}
		close(release)
		synctest.Wait()
		if written, err := try(t.Context(), g, red); !written || err != nil {
			t.Errorf("after it came back: written %t, %v", written, err)
		}
	})
}

// TestATenantWithoutALockIsRefused checks that it is a bad request if there is
// no locker for a tenant (QV-12).
func TestATenantWithoutALockIsRefused(t *testing.T) {
	g := gateOf(t, true, &answering{validate: agree, locker: func(string) plugins.Locker { return nil }})
	written, err := try(t.Context(), g, red)
	if written || !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "cannot get tenant") {
		t.Errorf("written %t, %v", written, err)
	}
}

func TestPluginsThatCannotStart(t *testing.T) {
	type makes = func(plugins.Environment) (plugins.Validator, error)
	for name, tc := range map[string]struct {
		init makes
		want string
	}{
		"an error": {func(plugins.Environment) (plugins.Validator, error) {
			return nil, errors.New("no disk")
		}, "no disk"},
		"a panic":      {func(plugins.Environment) (plugins.Validator, error) { panic("no disk") }, "no disk"},
		"no validator": {func(plugins.Environment) (plugins.Validator, error) { return nil, nil }, "no validator"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(clientgoscheme.Scheme, []plugins.Registration{{ID: "mine", InitFn: tc.init}}, plugins.Environment{}, Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "plugin mine") {
				t.Errorf("got %v", err)
			}
		})
	}
}
