package deletion

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestDeletionsAreRememberedForAWhile(t *testing.T) {
	var d Deletions
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
	var d Deletions
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 1000 {
		d.Add(types.UID(fmt.Sprint(i)), now)
		now = now.Add(time.Minute)
	}
	if most := 2 * int(remembered/time.Minute); len(d.seen) > most+2 {
		t.Errorf("%d deletions are remembered, most of them too old to count", len(d.seen))
	}
}
