package stored

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func create(uid types.UID, bytes int64) Write {
	return Write{UID: uid, Growth: Amount{Objects: 1, Bytes: bytes}}
}

func TestReserve(t *testing.T) {
	most := Amount{Objects: 2, Bytes: 100}
	update := func(uid types.UID, bytes int64) Write {
		return Write{UID: uid, Version: "5", Growth: Amount{Bytes: bytes}}
	}
	for name, tc := range map[string]struct {
		before []Write
		write  Write
		most   Amount
		want   string // in the error; empty for none
	}{
		"room":              {write: create("a", 100), most: most},
		"too large":         {write: create("a", 101), most: most, want: "have 0B, 101B more are needed, and no more than 100B are allowed: delete some"},
		"too many":          {before: []Write{create("a", 1), create("b", 1)}, write: create("c", 1), most: most, want: "has 2 objects of all kinds, and no more than 2 are allowed: delete some"},
		"the last one":      {before: []Write{create("a", 1)}, write: create("b", 99), most: most},
		"no limits":         {before: []Write{create("a", 1), create("b", 1)}, write: create("c", 1000)},
		"an update":         {before: []Write{create("a", 1), create("b", 1)}, write: update("a", 50), most: most},
		"a large update":    {before: []Write{create("a", 90)}, write: update("b", 20), most: most, want: "20B more"},
		"a smaller object":  {before: []Write{create("a", 100), create("b", 0)}, write: update("a", -1), most: Amount{Objects: 1, Bytes: 1}},
		"the same twice":    {before: []Write{update("a", 60)}, write: update("a", 70), most: most},
		"one after another": {before: []Write{create("a", 60)}, write: update("a", 70), most: most, want: "have 60B, 70B more"},
	} {
		t.Run(name, func(t *testing.T) {
			u := NewUsage()
			for _, write := range tc.before {
				if err := u.Reserve("red", write, Amount{}); err != nil {
					t.Fatal(err)
				}
			}
			err := u.Reserve("red", tc.write, tc.most)
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err := u.Reserve("blue", create("z", 100), most); err != nil {
				t.Errorf("another tenant: %v", err)
			}
		})
	}
}

// TestEvents checks when a write that was allowed counts no more, because the
// object itself does.
func TestEvents(t *testing.T) {
	one, none := Amount{Objects: 1, Bytes: 40}, Amount{}
	for name, tc := range map[string]struct {
		write   Write
		version string
		was, is Amount
		want    Amount
	}{
		"of the creation":            {create("a", 50), "7", none, one, one},
		"of another object":          {create("b", 50), "7", none, one, Amount{Objects: 2, Bytes: 90}},
		"older than the change":      {Write{UID: "a", Version: "8", Growth: Amount{Bytes: 9}}, "7", none, one, Amount{Objects: 1, Bytes: 49}},
		"of what is changed":         {Write{UID: "a", Version: "7", Growth: Amount{Bytes: 9}}, "7", none, one, Amount{Objects: 1, Bytes: 49}},
		"of the change":              {Write{UID: "a", Version: "7", Growth: Amount{Bytes: 9}}, "10", none, one, one},
		"of the deletion":            {create("a", 50), "", one, none, Amount{Objects: -1, Bytes: -40}},
		"of a version of other form": {Write{UID: "a", Version: "7", Growth: Amount{Bytes: 9}}, "x", none, one, one},
	} {
		t.Run(name, func(t *testing.T) {
			u := NewUsage()
			if err := u.Reserve("red", tc.write, Amount{}); err != nil {
				t.Fatal(err)
			}
			u.observe("red", "a", tc.version, tc.was, tc.is)
			if got := u.lockedTenant("red").used(Write{}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAWriteWithoutAnEventCountsForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, most := NewUsage(), Amount{Objects: 1}
		if err := u.Reserve("red", create("a", 1), most); err != nil {
			t.Fatal(err)
		}
		time.Sleep(staleAfter)
		if u.Reserve("red", create("b", 1), most) == nil {
			t.Error("it was forgotten at once")
		}
		time.Sleep(time.Nanosecond)
		if err := u.Reserve("red", create("b", 1), most); err != nil {
			t.Error(err)
		}
	})
}

func TestADryRunCountsNothing(t *testing.T) {
	u, most := NewUsage(), Amount{Objects: 1}
	for range 2 {
		dry := create("a", 1)
		dry.Dry = true
		if err := u.Reserve("red", dry, most); err != nil {
			t.Error(err)
		}
	}
	u.observe("red", "b", "1", Amount{}, Amount{Objects: 1})
	u.observe("red", "b", "", Amount{Objects: 1}, Amount{})
	if len(u.tenants) > 0 {
		t.Errorf("there are %v", u.tenants)
	}
}
