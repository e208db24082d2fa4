package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestController runs a real controller and a real event handler with the
// queue. They must use it as a priority queue, or priorities are lost: keys of
// the initial list have a low one, and a key that fails or is requeued keeps
// its own.
func TestController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		start := time.Now()
		q := New(func(r reconcile.Request) string { return r.Namespace }, Options{
			Observe: func(w Wait) {
				got = append(got, fmt.Sprint(w.Tenant, " ", w.Priority, " after ", time.Since(start)))
			},
		})
		q.Pause("list")
		results := map[string][]error{"list": {errors.New("once"), errors.New("twice"), nil}, "watch": {nil}}
		c := newController(t, q, results)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Start(ctx) }()
		time.Sleep(time.Second)
		q.Resume("list")
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{
			"watch 0 after 0s",
			"list -100 after 1s", "list -100 after 1.005s", "list -100 after 1.015s", // two failures
			"list -100 after 11.015s", // RequeueAfter
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		checkEmpty(t, q)
		cancel()
		if err := <-ended; err != nil || !q.ShuttingDown() {
			t.Errorf("ended with %v, the queue shut down: %v", err, q.ShuttingDown())
		}
	})
}

// newController returns a controller whose reconciler returns the results of
// each tenant in order; the first success of a tenant asks for a requeue.
func newController(t *testing.T, q *Queue[reconcile.Request], results map[string][]error) controller.Controller {
	t.Helper()
	reconciler := func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		rest := results[r.Namespace]
		if len(rest) == 0 {
			return reconcile.Result{}, nil
		}
		results[r.Namespace] = rest[1:]
		if rest[0] == nil && r.Namespace == "list" {
			return reconcile.Result{RequeueAfter: 10 * time.Second}, nil
		}
		return reconcile.Result{}, rest[0]
	}
	c, err := controller.NewUnmanaged("fairqueue", controller.Options{
		SkipNameValidation: new(true),
		Logger:             logr.Discard(),
		Reconciler:         reconcile.Func(reconciler),
		NewQueue: func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return q
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(events(t, q)); err != nil {
		t.Fatal(err)
	}
	return c
}

// events is a source of one object of the initial list and a later one.
func events(t *testing.T, q *Queue[reconcile.Request]) source.Source {
	t.Helper()
	return source.Func(func(ctx context.Context, got workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if got != workqueue.TypedRateLimitingInterface[reconcile.Request](q) {
			t.Errorf("the controller uses %T", got)
		}
		for _, namespace := range []string{"list", "watch"} {
			h := &handler.EnqueueRequestForObject{}
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "it"}}
			h.Create(ctx, event.CreateEvent{Object: object, IsInInitialList: namespace == "list"}, got)
		}
		return nil
	})
}
