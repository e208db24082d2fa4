package queue

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func podRequest(name string) Request {
	return Request{Cluster: "red", Kind: "Pod", Key: client.ObjectKey{Namespace: "shop", Name: name}}
}

// TestTurn checks that one request has it at a time, and parked requests are
// called one after the other, in order.
func TestTurn(t *testing.T) {
	var called []string
	turns := NewTurn(func(r Request) { called = append(called, r.Key.Name) })
	want := func(names ...string) {
		t.Helper()
		if diff := cmp.Diff(names, called); diff != "" {
			t.Error(diff)
		}
	}
	if !turns.Take() || turns.Take() {
		t.Error("none has it, or two")
	}
	for _, name := range []string{"b", "c", "b", "d"} {
		turns.Wait(podRequest(name))
		turns.Ended(podRequest(name))
	}
	want()
	turns.Give()
	turns.Ended(podRequest("a"))
	want("b")
	turns.Ended(podRequest("other"))
	want("b") // when it has ended, the next is called
	if !turns.Take() {
		t.Error("it is not free")
	}
	turns.Give()
	turns.Ended(podRequest("b"))
	want("b", "c")
	turns.Ended(podRequest("c")) // without having taken it
	want("b", "c", "d")
}

// TestTurnIsNotLost checks that the turn may be released between a failed Take
// and Wait.
func TestTurnIsNotLost(t *testing.T) {
	called := 0
	turns := NewTurn(func(Request) { called++ })
	turns.Take()
	if turns.Take() {
		t.Fatal("it was taken twice")
	}
	turns.Give()
	turns.Ended(podRequest("a"))
	turns.Wait(podRequest("b"))
	turns.Ended(podRequest("b"))
	if called != 1 {
		t.Errorf("it was called %d times", called)
	}
}

// TestTurnOfACrowd checks that each request that waits gets the turn, whichever
// others overtake it.
func TestTurnOfACrowd(t *testing.T) {
	const crowd = 1000
	var queue []Request
	turns := NewTurn(func(r Request) { queue = append([]Request{r}, queue...) })
	for i := range crowd {
		queue = append(queue, podRequest(fmt.Sprint(i)))
	}
	served, bounced := map[Request]bool{}, 0
	var inFlight []Request // the first of them has the turn
	for len(queue) > 0 || len(inFlight) > 0 {
		if len(queue) > 0 && len(inFlight) < 8 {
			r := queue[0]
			queue = queue[1:]
			if turns.Take() {
				inFlight = append([]Request{r}, inFlight...)
				continue
			}
			bounced++
			turns.Wait(r)
			turns.Ended(r)
			if bounced%100 != 0 {
				continue
			}
		}
		if len(inFlight) > 0 {
			served[inFlight[0]] = true
			turns.Give()
			turns.Ended(inFlight[0])
			inFlight = inFlight[1:]
		}
	}
	if len(served) != crowd || bounced > 2*crowd {
		t.Errorf("%d of %d were served, after %d found it taken", len(served), crowd, bounced)
	}
}
