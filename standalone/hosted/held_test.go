package hosted

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"
)

// waiters is a number of connections that wait for one name.
type waiters struct {
	results chan bool
	number  int
}

func awaitAll(ctx context.Context, s *sleepers, name string, number int) *waiters {
	w := &waiters{make(chan bool, number), number}
	for range number {
		go func() { w.results <- s.await(ctx, name) }()
	}
	return w
}

// served returns how many of the connections were passed on, after all ended.
func (w *waiters) served(t *testing.T) (served int) {
	t.Helper()
	for range w.number {
		select {
		case ok := <-w.results:
			if ok {
				served++
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a connection waits forever")
		}
	}
	return served
}

func (s *sleepers) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

func TestConnectionsWakeOnce(t *testing.T) {
	g := NewWithT(t)
	s := newSleepers()
	woken := make(chan struct{}, 10)
	s.add("red", func() { woken <- struct{}{} })
	g.Expect(s.count()).To(Equal(1))
	g.Expect(s.await(t.Context(), "blue")).To(BeTrue(), "one that does not sleep is not waited for")

	all := awaitAll(t.Context(), s, "red", 5)
	g.Eventually(s.waiting).Should(Equal(5))
	g.Expect(woken).To(HaveLen(1))
	s.remove("red")
	g.Expect(all.served(t)).To(Equal(5))
	g.Expect(s.waiting()).To(BeZero())
	g.Expect(s.held).To(BeEmpty())
	g.Expect(s.count()).To(BeZero())
	s.remove("red")
}

// TestASecondTry: when all connections have given up, the next one wakes the
// control plane again.
func TestASecondTry(t *testing.T) {
	g := NewWithT(t)
	s := newSleepers()
	woken := make(chan struct{}, 10)
	s.add("red", func() { woken <- struct{}{} })
	ctx, cancel := context.WithCancel(t.Context())
	first := awaitAll(ctx, s, "red", 3)
	g.Eventually(s.waiting).Should(Equal(3))
	cancel()
	g.Expect(first.served(t)).To(BeZero())
	g.Expect(s.held).To(BeEmpty())

	second := awaitAll(t.Context(), s, "red", 1)
	g.Eventually(woken).Should(HaveLen(2))
	s.remove("red")
	g.Expect(second.served(t)).To(Equal(1))
}

func TestHeldConnectionsAreBounded(t *testing.T) {
	g := NewWithT(t)
	s := newSleepers()
	s.add("red", func() {})
	s.add("blue", func() {})
	red := awaitAll(t.Context(), s, "red", heldPerName)
	g.Eventually(s.waiting).Should(Equal(heldPerName))
	g.Expect(s.await(t.Context(), "red")).To(BeFalse(), "one too many for a name")

	blue := awaitAll(t.Context(), s, "blue", 1)
	g.Eventually(s.waiting).Should(Equal(heldPerName+1), "another name is not affected")
	s.mu.Lock()
	s.all += heldTotal - heldPerName - 1
	s.mu.Unlock()
	g.Expect(s.await(t.Context(), "blue")).To(BeFalse(), "one too many for the host")
	s.remove("red")
	s.remove("blue")
	g.Expect(red.served(t)).To(Equal(heldPerName))
	g.Expect(blue.served(t)).To(Equal(1))
}

// TestWakesAreLimited: wakes in excess of the rate are delayed, and a name that
// gets no turn in time ends the wait of all its connections.
func TestWakesAreLimited(t *testing.T) {
	g := NewWithT(t)
	s := newSleepers()
	s.wakes = rate.NewLimiter(rate.Every(time.Hour), 1)
	woken := make(chan string, 10)
	s.add("red", func() { woken <- "red" })
	s.add("blue", func() { woken <- "blue" })
	red := awaitAll(t.Context(), s, "red", 1)
	g.Eventually(woken).Should(Receive(Equal("red")))
	g.Expect(awaitAll(t.Context(), s, "blue", 4).served(t)).To(BeNumerically("<", 4))
	g.Expect(woken).To(BeEmpty())
	g.Eventually(s.waiting).Should(Equal(1))
	s.remove("red")
	g.Expect(red.served(t)).To(Equal(1))
}
