package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtualcluster/virtualcluster/gateway/convert/webhooks"
)

// TestControllersWaitLittle: a tenant takes a part of the time of controllers.
func TestControllersWaitLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, waited, began := newLimits(), time.Duration(0), time.Now()
		for time.Since(began) < time.Hour {
			ctx, end, err := l.begin(t.Context(), controller, false)
			if err != nil {
				if !errors.Is(err, webhooks.ErrTooSlow) {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				continue
			}
			before := time.Now()
			<-ctx.Done() // a webhook that never responds
			waited += time.Since(before)
			if !errors.Is(context.Cause(ctx), webhooks.ErrTooSlow) {
				t.Fatal(context.Cause(ctx))
			}
			end()
		}
		if share := waited.Seconds() / time.Hour.Seconds(); share > controllerShare+0.01 {
			t.Errorf("controllers waited for %.2f of the time", share)
		}
	})
}

// TestFastWebhooksAreCalledOften: those of controllers, too.
func TestFastWebhooksAreCalledOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		for i := range 2000 {
			_, end, err := l.begin(t.Context(), controller, false)
			if err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
			time.Sleep(2 * time.Millisecond)
			end()
		}
	})
}

// TestFormsAtOnce: a request of a controller that is shown in two forms takes a
// place of each.
func TestFormsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		for _, converted := range []bool{false, true} {
			for range controllerMost {
				_, end, err := l.begin(t.Context(), controller, converted)
				if err != nil {
					t.Fatal(err)
				}
				defer end()
			}
			if _, _, err := l.begin(t.Context(), controller, converted); !errors.Is(err, webhooks.ErrTooMany) {
				t.Errorf("one more: %v", err)
			}
		}
	})
}

// TestTooMany: more than some requests of a tenant do not wait for its webhooks.
func TestTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		for range evaluations {
			_, end, err := l.begin(t.Context(), ofTenant, false)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
		}
		began := time.Now()
		if _, _, err := l.begin(t.Context(), ofTenant, false); !errors.Is(err, webhooks.ErrTooMany) || time.Since(began) != queueing {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if _, end, err := l.begin(t.Context(), controller, false); err != nil {
			t.Errorf("a controller: %v", err)
		} else {
			end()
		}
	})
}
