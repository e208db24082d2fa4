package engine

import (
	"errors"
	"testing"
)

func TestTenants(t *testing.T) {
	all := newTenants()
	first, second := &engagement{}, &engagement{}
	store := func(want *engagement, now *engagement, err error) {
		t.Helper()
		got := all.replace("blue", func(was *engagement) (*engagement, error) {
			if was != want {
				t.Errorf("the engagement so far is %p, want %p", was, want)
			}
			return now, err
		})
		if !errors.Is(got, err) {
			t.Errorf("got %v, want %v", got, err)
		}
	}
	failed := errors.New("the tenant is being disengaged")
	store(nil, nil, failed)
	if all.Count() != 0 || all.get("blue") != nil {
		t.Error("a tenant whose engagement failed is engaged")
	}
	store(nil, first, nil)
	store(first, second, nil)

	// The first engagement ends only now.
	all.remove("blue", first, func() { t.Error("the queue of the second engagement was dropped") })
	if all.Count() != 1 || all.get("blue") != second {
		t.Error("the second engagement is gone")
	}
	seen, dropped := 0, false
	all.each(func(*engagement) { seen++ })
	all.remove("blue", second, func() { dropped = true })
	if seen != 1 || !dropped || all.Count() != 0 {
		t.Errorf("%d tenants were engaged; dropped: %t; left are %d", seen, dropped, all.Count())
	}
}
