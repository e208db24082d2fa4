package host

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// assigned are the control planes that a replica keeps, and those that it may
// begin.
type assigned struct{ keeps, begins []string }

func (a assigned) Keeps(key types.NamespacedName) bool {
	return slices.Contains(a.keeps, key.Namespace)
}
func (a assigned) Begins(key types.NamespacedName) bool {
	return slices.Contains(a.begins, key.Namespace)
}

func keyOf(controlPlane string) types.NamespacedName { return requestFor(controlPlane).NamespacedName }

// dividing makes a division that records what it hands over.
func dividing(failure error) (d *division, handedOver *[]string, again *int) {
	measured, _ := newHandovers(prometheus.NewRegistry()) // the only one there
	d, handedOver, again = newDivision(measured, func() string { return reasonDivision }), &[]string{}, new(int)
	d.handOver = func(_ context.Context, key types.NamespacedName) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		*handedOver = append(*handedOver, key.Namespace)
		return failure
	}
	d.again = func(context.Context) error {
		*again++
		return nil
	}
	return d, handedOver, again
}

// TestDivision: a replica runs what it may begin until it is not for it any more.
func TestDivision(t *testing.T) {
	g := NewWithT(t)
	d, handedOver, again := dividing(nil)
	_, _, ok := d.enter(t.Context(), keyOf("red"))
	g.Expect(ok).To(BeFalse(), "without shares")

	both := assigned{keeps: []string{"red", "blue"}, begins: []string{"red", "blue"}}
	g.Expect(d.serve(t.Context(), both)).To(Succeed())
	g.Expect(*again).To(Equal(1))
	for _, name := range []string{"red", "blue"} {
		_, leave, ok := d.enter(t.Context(), keyOf(name))
		g.Expect(ok).To(BeTrue(), name)
		leave()
	}
	_, _, ok = d.enter(t.Context(), keyOf("green"))
	g.Expect(ok).To(BeFalse(), "for another replica")

	g.Expect(d.serve(t.Context(), assigned{keeps: []string{"blue", "green"}})).To(Succeed())
	g.Expect(*handedOver).To(Equal([]string{"red"}))
	_, _, ok = d.enter(t.Context(), keyOf("red"))
	g.Expect(ok).To(BeFalse())
	_, _, ok = d.enter(t.Context(), keyOf("green"))
	g.Expect(ok).To(BeFalse(), "another replica claims it")
	_, leave, ok := d.enter(t.Context(), keyOf("blue"))
	g.Expect(ok).To(BeTrue(), "it continues, although it could not begin")
	leave()

	d.forget(keyOf("blue"))
	_, _, ok = d.enter(t.Context(), keyOf("blue"))
	g.Expect(ok).To(BeFalse(), "another one of that name")
	g.Expect(d.serve(t.Context(), assigned{})).To(Succeed())
	g.Expect(*handedOver).To(Equal([]string{"red"}))
}

// TestHandOverWaitsForAReconcile: what a reconcile starts after the decision would
// run in two replicas.
func TestHandOverWaitsForAReconcile(t *testing.T) {
	g := NewWithT(t)
	d, handedOver, _ := dividing(nil)
	red := assigned{keeps: []string{"red"}, begins: []string{"red"}}
	g.Expect(d.serve(t.Context(), red)).To(Succeed())
	reconciling, leave, _ := d.enter(t.Context(), keyOf("red"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(d.serve(ctx, assigned{})).To(MatchError(context.Canceled))
	g.Expect(*handedOver).To(BeEmpty())
	g.Expect(reconciling.Err()).To(MatchError(context.Canceled), "it need not wait for the super cluster")
	_, _, ok := d.enter(t.Context(), keyOf("red"))
	g.Expect(ok).To(BeFalse(), "it is still to be handed over")

	served := make(chan error)
	go func() { served <- d.serve(t.Context(), red) }()
	g.Consistently(served, "50ms").ShouldNot(Receive())
	leave()
	g.Eventually(served, "20s").Should(Receive(BeNil()))
	g.Expect(*handedOver).To(Equal([]string{"red"}))
	_, leave, ok = d.enter(t.Context(), keyOf("red"))
	g.Expect(ok).To(BeTrue(), "it is for this replica again")
	leave()
}

func TestHandOverThatFails(t *testing.T) {
	g := NewWithT(t)
	stuck := errors.New("the controllers are still stopping")
	d, _, again := dividing(stuck)
	g.Expect(d.serve(t.Context(), assigned{keeps: []string{"red"}, begins: []string{"red"}})).To(Succeed())
	_, leave, _ := d.enter(t.Context(), keyOf("red"))
	leave()
	g.Expect(d.serve(t.Context(), assigned{})).To(MatchError(stuck))
	g.Expect(*again).To(Equal(1), "no other replica may begin")

	d.handOver = func(context.Context, types.NamespacedName) error { return nil }
	g.Expect(d.serve(t.Context(), assigned{})).To(Succeed(), "it is handed over now")
	g.Expect(d.lost).To(BeEmpty())
}
