package sharedcrds

import "testing"

// TestLookup has every row of the matching of CRDs in Arktos.
func TestLookup(t *testing.T) {
	const unknown = Policy("Sometimes")
	all := []Policy{NeverUseSystemCRDUnlessForced, SystemCRDFirst, LocalCRDFirst, unknown, ""}
	type row struct {
		inRange, local bool
		want           map[Policy]Answer
	}
	for _, policy := range all {
		for _, inRange := range []bool{false, true} {
			for _, local := range []bool{false, true} {
				if got := Lookup(System{InRange: inRange, Forced: true}, policy, local); got != UseSystem {
					t.Errorf("forced, policy %q, in range %t, local %t: %d, want the system's", policy, inRange, local, got)
				}
			}
		}
	}
	for _, r := range []row{
		{false, false, map[Policy]Answer{NeverUseSystemCRDUnlessForced: UseNone, SystemCRDFirst: UseNone, LocalCRDFirst: UseNone}},
		{false, true, map[Policy]Answer{NeverUseSystemCRDUnlessForced: UseLocal, SystemCRDFirst: UseLocal, LocalCRDFirst: UseLocal}},
		{true, false, map[Policy]Answer{NeverUseSystemCRDUnlessForced: UseNone, SystemCRDFirst: UseSystem, LocalCRDFirst: UseSystem}},
		{true, true, map[Policy]Answer{NeverUseSystemCRDUnlessForced: UseLocal, SystemCRDFirst: UseSystem, LocalCRDFirst: UseLocal}},
	} {
		r.want[unknown], r.want[""] = r.want[LocalCRDFirst], r.want[LocalCRDFirst]
		for policy, want := range r.want {
			if got := Lookup(System{InRange: r.inRange}, policy, r.local); got != want {
				t.Errorf("policy %q, in range %t, local %t: %d, want %d", policy, r.inRange, r.local, got, want)
			}
		}
	}
}
