package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestLookTime: single looks delay no other, however long they take on a busy
// machine, and many of them take a small share of the time.
func TestLookTime(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	var looks lookTime
	now := time.Now()
	look := func(takes time.Duration) time.Duration {
		begin := now
		now = now.Add(takes)
		return looks.spend(begin, now)
	}
	for range 4 {
		g.Expect(look(100*time.Millisecond)).To(BeNumerically("<=", 0), "a burst")
	}
	now = now.Add(time.Hour)
	g.Expect(look(400*time.Millisecond)).To(BeNumerically("<=", 0), "a rare look")

	begin, taken := now, time.Duration(0)
	for range 1000 {
		taken += 50 * time.Millisecond
		now = now.Add(max(pause, look(50*time.Millisecond)))
	}
	g.Expect(now.Sub(begin).Seconds()).To(BeNumerically("~", lookShare*taken.Seconds(), lookBurst.Seconds()))
}

// TestUntilCheck: expensive checks are rare, and none is postponed for long.
func TestUntilCheck(t *testing.T) {
	g := NewWithT(t)
	b := &ByNeed{Options: Options{Linger: time.Minute}}
	for took, until := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 100 * time.Millisecond: 30 * time.Second, time.Second: 200 * time.Second, time.Hour: 10 * time.Minute,
	} {
		g.Expect(b.untilCheck(took)).To(Equal(until), "after %s", took)
	}
}
