package chain

import (
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// TestPick takes all addresses of a choice, one after the other.
func TestPick(t *testing.T) {
	for name, tc := range map[string]struct {
		choice      addressChoice
		count       int
		has, hasNot []string
	}{
		"ranges of a network": {
			addressChoice{part: netip.MustParsePrefix("10.0.0.0/24"), own: prefixes("10.0.0.32/28", "10.0.0.128/30"), others: prefixes("10.0.0.64/26")},
			16, []string{"10.0.0.33", "10.0.0.46", "10.0.0.129", "10.0.0.130"}, []string{"10.0.0.32", "10.0.0.47", "10.0.0.128", "10.0.0.131", "10.0.0.65"},
		},
		"what is left": {
			addressChoice{part: netip.MustParsePrefix("10.0.0.0/24"), others: prefixes("10.0.0.32/27", "10.0.0.128/25")},
			127 - 32 - 2, []string{"10.0.0.2", "10.0.0.31", "10.0.0.64", "10.0.0.127"}, []string{"10.0.0.1", "10.0.0.10", "10.0.0.40", "10.0.0.200"},
		},
		"a range with addresses of a meaning": {
			addressChoice{part: netip.MustParsePrefix("10.0.0.0/24"), own: prefixes("10.0.0.0/28")},
			12, []string{"10.0.0.2", "10.0.0.14"}, []string{"10.0.0.0", "10.0.0.1", "10.0.0.10", "10.0.0.15"},
		},
		"a range that a tenant made outside of its own": {
			addressChoice{part: netip.MustParsePrefix("10.0.0.0/24"), own: prefixes("10.0.0.252/30", "10.1.0.0/16", "0.0.0.0/0", "::/0")},
			251, []string{"10.0.0.253", "10.0.0.2"}, []string{"10.1.0.1", "10.0.0.255"},
		},
		"no address": {addressChoice{part: netip.MustParsePrefix("10.0.0.0/24"), own: prefixes("10.0.0.32/31", "10.0.0.40/32")}, 0, nil, nil},
		"IPv6": {
			addressChoice{part: netip.MustParsePrefix("fd00::/112"), own: prefixes("fd00::40/125")},
			7, []string{"fd00::41", "fd00::47"}, []string{"fd00::40", "fd00::48"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			taken := sets.New[netip.Addr]()
			for {
				address := tc.choice.pick(taken.Has)
				if !address.IsValid() {
					break
				}
				if taken.Has(address) {
					t.Fatalf("%s was picked twice", address)
				}
				taken.Insert(address)
			}
			if len(taken) != tc.count {
				t.Errorf("%d addresses, want %d", len(taken), tc.count)
			}
			for _, text := range tc.has {
				if !taken.Has(netip.MustParseAddr(text)) {
					t.Errorf("%s was not picked", text)
				}
			}
			for _, text := range tc.hasNot {
				if taken.Has(netip.MustParseAddr(text)) {
					t.Errorf("%s was picked", text)
				}
			}
		})
	}
}

// TestPickLeavesTheStart: Services that name an address find one at the start.
func TestPickLeavesTheStart(t *testing.T) {
	choice := addressChoice{part: netip.MustParsePrefix("10.0.0.0/20"), own: prefixes("10.0.1.0/24")}
	taken := sets.New[netip.Addr]()
	for range 256 - 16 - 1 {
		address := choice.pick(taken.Has)
		if address.Less(netip.MustParseAddr("10.0.1.16")) {
			t.Fatalf("%s was picked before %d others", address, 256-16-1-len(taken))
		}
		taken.Insert(address)
	}
	if address := choice.pick(taken.Has); !address.Less(netip.MustParseAddr("10.0.1.16")) {
		t.Errorf("%s was picked after all others", address)
	}
}
