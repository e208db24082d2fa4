package host

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
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
	d, handedOver, again = newDivision(), &[]string{}, new(int)
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
	_, ok := d.enter(keyOf("red"))
	g.Expect(ok).To(BeFalse(), "without shares")

	both := assigned{keeps: []string{"red", "blue"}, begins: []string{"red", "blue"}}
	g.Expect(d.serve(t.Context(), both)).To(Succeed())
	g.Expect(*again).To(Equal(1))
	for _, name := range []string{"red", "blue"} {
		leave, ok := d.enter(keyOf(name))
		g.Expect(ok).To(BeTrue(), name)
		leave()
	}
	_, ok = d.enter(keyOf("green"))
	g.Expect(ok).To(BeFalse(), "for another replica")

	g.Expect(d.serve(t.Context(), assigned{keeps: []string{"blue", "green"}})).To(Succeed())
	g.Expect(*handedOver).To(Equal([]string{"red"}))
	_, ok = d.enter(keyOf("red"))
	g.Expect(ok).To(BeFalse())
	_, ok = d.enter(keyOf("green"))
	g.Expect(ok).To(BeFalse(), "another replica claims it")
	leave, ok := d.enter(keyOf("blue"))
	g.Expect(ok).To(BeTrue(), "it continues, although it could not begin")
	leave()

	d.forget(keyOf("blue"))
	_, ok = d.enter(keyOf("blue"))
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
	leave, _ := d.enter(keyOf("red"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(d.serve(ctx, assigned{})).To(MatchError(context.Canceled))
	g.Expect(*handedOver).To(BeEmpty())

	g.Expect(d.serve(t.Context(), red)).To(Succeed())
	again, ok := d.enter(keyOf("red"))
	g.Expect(ok).To(BeTrue())
	leave()
	served := make(chan error)
	go func() { served <- d.serve(t.Context(), assigned{}) }()
	g.Consistently(served, "50ms").ShouldNot(Receive())
	again()
	g.Eventually(served).Should(Receive(BeNil()))
	g.Expect(*handedOver).To(Equal([]string{"red"}))
}

func TestHandOverThatFails(t *testing.T) {
	g := NewWithT(t)
	stuck := errors.New("the controllers are still stopping")
	d, _, again := dividing(stuck)
	g.Expect(d.serve(t.Context(), assigned{keeps: []string{"red"}, begins: []string{"red"}})).To(Succeed())
	leave, _ := d.enter(keyOf("red"))
	leave()
	g.Expect(d.serve(t.Context(), assigned{})).To(MatchError(stuck))
	g.Expect(*again).To(Equal(1), "no other replica may begin")
}
