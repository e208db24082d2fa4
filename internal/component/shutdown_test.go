package component

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestBusyControllersEnd stops controllers while they have work, as often as
// shows a queue that can block at its shutdown.
func TestBusyControllersEnd(t *testing.T) {
	for range 20 {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		c := busyController(t)
		go func() { ended <- c.Start(ctx) }()
		time.Sleep(10 * time.Millisecond) // it is busy then
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the controller does not end")
		}
	}
}

// busyController returns a controller with the options of the programs' managers
// and events all the time.
func busyController(t *testing.T) controller.Controller {
	t.Helper()
	options := (&Options{}).Manager("test", runtime.NewScheme()).Controller
	c, err := controller.NewUnmanaged("test", controller.Options{
		UsePriorityQueue: options.UsePriorityQueue, SkipNameValidation: options.SkipNameValidation,
		MaxConcurrentReconciles: 128,
		Logger:                  logr.Discard(),
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			time.Sleep(time.Millisecond)
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan event.GenericEvent)
	go func() {
		names := "abcdefghijklmnopqrstuvwxyz"
		for i := 0; t.Context().Err() == nil; i++ {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: names[i%len(names):]}}
			select {
			case events <- event.GenericEvent{Object: pod}:
			case <-t.Context().Done():
			}
		}
	}()
	if err := c.Watch(source.Channel(events, &handler.EnqueueRequestForObject{})); err != nil {
		t.Fatal(err)
	}
	return c
}
