package views

import "testing"

// TestDigests checks that a digest is computed once, and again after a change,
// even one during the computation.
func TestDigests(t *testing.T) {
	var d digests
	computed := 0
	compute := func() any {
		computed++
		return computed
	}
	policies, other := digestKey{"NetworkPolicy", "shop"}, digestKey{"NetworkPolicy", "cart"}
	want := func(key digestKey, want int) {
		t.Helper()
		if got := d.get(key, compute); got != want {
			t.Errorf("digest %v, want %d", got, want)
		}
	}
	want(policies, 1)
	want(policies, 1)
	want(other, 2)
	d.forget(policies)
	want(policies, 3)
	want(other, 2)
	d.forget(policies)
	d.get(policies, func() any {
		d.forget(policies)
		return "out of date"
	})
	want(policies, 4)
	want(policies, 4)
}
