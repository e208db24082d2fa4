package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// agreeing is a validator of ConfigMaps that allows all of them.
type agreeing struct{ plugins.TenantLocks }

func (*agreeing) Name() string                                    { return "agreeing" }
func (*agreeing) Kinds() []schema.GroupKind                       { return []schema.GroupKind{{Kind: "ConfigMap"}} }
func (*agreeing) Validate(context.Context, plugins.Request) error { return nil }
func (a *agreeing) Locker(tenant string) plugins.Locker           { return a.Of(tenant) }

// newValidator returns the validator of a tenant whose ConfigMaps are validated.
func newValidator(t *testing.T) *validator {
	t.Helper()
	metrics, err := validation.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	registration := plugins.Registration{ID: "agreeing", InitFn: func(plugins.Environment) (plugins.Validator, error) { return &agreeing{}, nil }}
	gate, err := validation.New(clientgoscheme.Scheme, []plugins.Registration{registration}, plugins.Environment{}, validation.Options{Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	return &validator{session.NewTenant(kindstest.Blue()), gate, queue.NewTurn(func(queue.Request) {})}
}

// TestReserve checks that an object in its turn is written, that others wait, and
// that objects which nothing validates do neither.
func TestReserve(t *testing.T) {
	v := newValidator(t)
	write := func(ctx context.Context, obj client.Object) error {
		return v.Write(ctx, obj, nil, func(context.Context) error { return nil })
	}
	settings, pod := &corev1.ConfigMap{}, &corev1.Pod{}
	reserved, release, err := v.Reserve(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := write(reserved, settings); err != nil {
			t.Errorf("in its turn: %v", err)
		}
		if err := write(t.Context(), settings); !errors.Is(err, queue.ErrNotItsTurn) {
			t.Errorf("written in the turn of another: %v", err)
		}
		if _, _, err := v.Reserve(t.Context(), settings); !errors.Is(err, queue.ErrNotItsTurn) {
			t.Errorf("reserved in the turn of another: %v", err)
		}
		if err := write(t.Context(), pod); err != nil {
			t.Errorf("a pod, which is not validated: %v", err)
		}
		_, releasePod, err := v.Reserve(t.Context(), pod)
		if err != nil {
			t.Fatalf("a pod, which is not validated: %v", err)
		}
		releasePod()
	}
	release()
	if err := write(t.Context(), settings); err != nil {
		t.Errorf("after the other's turn: %v", err)
	}
}
