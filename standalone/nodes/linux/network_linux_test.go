package linux

import (
	"slices"
	"testing"
)

// TestNetworksAreApart: no two nodes of a machine share a name or an address,
// and names fit into the kernel's.
func TestNetworksAreApart(t *testing.T) {
	const longestName = 15 // IFNAMSIZ without the zero at the end
	seen := map[string]byte{}
	for index := range maxNetworks {
		n := &network{index: byte(index)}
		if len(n.name()) > longestName {
			t.Errorf("%s is too long for a link", n.name())
		}
		for _, what := range []string{n.name(), n.hostAddress().String(), n.nodeAddress().String(), n.podNetwork().String()} {
			if other, taken := seen[what]; taken {
				t.Fatalf("networks %d and %d both have %s", other, index, what)
			}
			seen[what] = byte(index)
		}
	}
}

// TestNetworkIsDocumented: docs/real-node.md names these addresses.
func TestNetworkIsDocumented(t *testing.T) {
	for index, want := range [][]string{
		{"vc-node-0", "198.19.0.1", "198.19.0.2", "10.244.0.0/24"},
		{"vc-node-1", "198.19.1.1", "198.19.1.2", "10.244.1.0/24"},
	} {
		n := &network{index: byte(index)}
		got := []string{n.name(), n.hostAddress().String(), n.nodeAddress().String(), n.podNetwork().String()}
		if !slices.Equal(got, want) {
			t.Errorf("network %d is %v, want %v", index, got, want)
		}
	}
	if n := (&network{}); n.podNetwork().Contains(n.nodeAddress()) {
		t.Error("the node has an address of its pods")
	}
}
