package deletion

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestDeletionsAreRememberedForAWhile(t *testing.T) {
	d := NewDeletions()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if d.Has("a", start) {
		t.Error("a deletion is known without an observation")
	}
	d.Add("a", start)
	if !d.Has("a", start.Add(remembered)) {
		t.Error("a deletion is forgotten too early")
	}
	if d.Has("a", start.Add(remembered+time.Second)) || d.Has("b", start) {
		t.Error("a deletion is known too long, or for another object")
	}
	// A second observation renews it.
	d.Add("a", start.Add(remembered))
	if !d.Has("a", start.Add(2*remembered)) {
		t.Error("a deletion that was seen again is forgotten too early")
	}
}

func TestDeletionsDoNotPileUp(t *testing.T) {
	d := NewDeletions()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 1000 {
		d.Add(types.UID(fmt.Sprint(i)), now)
		now = now.Add(time.Minute)
	}
	if most := 2 * int(remembered/time.Minute); d.seen.Len() > most+2 {
		t.Errorf("%d deletions are remembered, most of them too old to count", d.seen.Len())
	}
}

// TestDeletionsAreBounded checks that an apiserver that claims any number of
// deletions cannot use any amount of memory.
func TestDeletionsAreBounded(t *testing.T) {
	d := NewDeletions()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 10 * maxRemembered {
		d.Add(types.UID(fmt.Sprint(i)), now)
	}
	if d.seen.Len() > 2*maxRemembered {
		t.Errorf("%d deletions are remembered", d.seen.Len())
	}
	if !d.Has(types.UID(fmt.Sprint(9*maxRemembered)), now) {
		t.Error("one of the latest deletions is forgotten")
	}
}
