package bench

import (
	"slices"
	"testing"
	"time"
)

func TestRecord(t *testing.T) {
	r, began := newRecord(), time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	r.noteCreated("a", "one", at(0))
	r.note("a", copied, at(4))
	r.note("a", copied, at(9)) // seen again
	r.note("b", copied, at(1)) // before the creation was answered
	r.noteCreated("b", "two", at(3))
	r.noteCreated("c", "two", at(5))

	for name, tc := range map[string]struct {
		group string
		m     moment
		want  []time.Time
	}{
		"all created pods": {"", created, []time.Time{at(0), at(3), at(5)}},
		"a group":          {"two", created, []time.Time{at(3), at(5)}},
		"a watch that was faster than the creation": {"two", copied, []time.Time{at(1)}},
		"the first time counts":                     {"one", copied, []time.Time{at(4)}},
		"none":                                      {"", gone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.moments(tc.group, tc.m); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if got := r.came(tc.group, tc.m); got != len(tc.want) {
				t.Errorf("%d are counted, want %d", got, len(tc.want))
			}
		})
	}
	spans := r.spans("", created, copied)
	slices.Sort(spans)
	if !slices.Equal(spans, []time.Duration{0, 4 * time.Millisecond}) {
		t.Errorf("the spans are %v", spans)
	}
}

// TestRecordTellsChanges tests that all waiters are notified of the next
// change, and of no repetition.
func TestRecordTellsChanges(t *testing.T) {
	r := newRecord()
	r.note("a", copied, time.Now())
	one, other := r.changes(), r.changes()
	told := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	r.note("a", copied, time.Now())
	if told(one) || told(other) {
		t.Error("notified of a repetition")
	}
	r.note("a", ran, time.Now())
	if !told(one) || !told(other) {
		t.Error("a waiter is not notified of a change")
	}
	if told(r.changes()) {
		t.Error("notified of an earlier change")
	}
}

func TestRatioOfService(t *testing.T) {
	began := time.Now()
	every := func(first, step, n int) []time.Time {
		var times []time.Time
		for i := range n {
			times = append(times, began.Add(time.Duration(first+i*step)*time.Millisecond))
		}
		return times
	}
	type members = [][]time.Time
	for name, tc := range map[string]struct {
		a, b   members
		want   float64
		served int
	}{
		"the same":                            {members{every(0, 2, 50)}, members{every(0, 2, 50)}, 1, 100},
		"ten to one, until the first is done": {members{every(0, 1, 101)}, members{every(0, 10, 101)}, 101.0 / 11, 112},
		"by members":                          {members{every(0, 1, 101)}, members{every(0, 2, 101), every(0, 2, 101)}, 101.0 / 51, 203},
		"from when all have begun":            {members{every(0, 1, 101)}, members{every(10, 1, 101), every(50, 1, 101)}, 1, 153},
		"when the others are not served":      {members{every(0, 1, 11)}, members{every(10, 1, 11)}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, served := ratioOfService(tc.a, tc.b)
			if got != tc.want || served != tc.served {
				t.Errorf("got %v of %d, want %v of %d", got, served, tc.want, tc.served)
			}
		})
	}
}
