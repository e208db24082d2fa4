package networks

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

var prefixes = cmpopts.EquateComparable(netip.Prefix{})

func TestOpenedBy(t *testing.T) {
	many := make([]networkv1.CIDR, 40)
	for i := range many {
		many[i] = "198.51.100.0/24"
	}
	everything := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	one := netip.MustParsePrefix("198.51.100.0/24")
	for name, tt := range map[string]struct {
		egress *networkv1.Egress
		want   []netip.Prefix
	}{
		"not set":           {nil, everything},
		"all":               {&networkv1.Egress{Type: "All"}, everything},
		"none":              {&networkv1.Egress{Type: "None"}, nil},
		"none, with ranges": {&networkv1.Egress{Type: "None", CIDRs: []networkv1.CIDR{"198.51.100.0/24"}}, nil},
		"ranges":            {&networkv1.Egress{Type: "CIDRs", CIDRs: []networkv1.CIDR{"198.51.100.0/24"}}, []netip.Prefix{one}},
		// A tenant can change its CRD for a moment.
		"a type that does not exist": {&networkv1.Egress{Type: "Some", CIDRs: []networkv1.CIDR{"198.51.100.0/24"}}, nil},
		"invalid ranges":             {&networkv1.Egress{Type: "CIDRs", CIDRs: []networkv1.CIDR{"", "198.51.100.1/24", "::ffff:10.0.0.0/104"}}, []netip.Prefix{one}},
		"too many":                   {&networkv1.Egress{Type: "CIDRs", CIDRs: many}, slices.Repeat([]netip.Prefix{one}, 32)},
	} {
		if diff := cmp.Diff(tt.want, openedBy(tt.egress), prefixes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSpecs(t *testing.T) {
	table := NewTable("default")
	closed := func(name string) networkv1.Network {
		n := *networkOf("flat")
		n.Name, n.Spec.Egress = name, &networkv1.Egress{Type: networkv1.EgressNone}
		return n
	}
	open := closed("a")
	open.Spec.Egress = &networkv1.Egress{Type: networkv1.EgressCIDRs, CIDRs: []networkv1.CIDR{"198.51.100.0/24"}}
	if err := table.Known(); !errors.As(err, new(*pending.WaitingError)) || table.Specs().Known() {
		t.Errorf("before the networks have been read: %v", err)
	}
	for _, step := range []struct {
		name     string
		networks []networkv1.Network
		want     []string
		differ   bool
	}{
		{"none yet", nil, nil, true},
		{"still none", nil, nil, false},
		{"first", []networkv1.Network{closed("a"), closed("b")}, []string{"a", "b"}, true},
		{"the same", []networkv1.Network{closed("a"), closed("b")}, nil, false},
		{"opened", []networkv1.Network{open, closed("b")}, []string{"a"}, true},
		{"gone", []networkv1.Network{open}, []string{"b"}, true},
	} {
		got, differ := table.Specs().set(step.networks)
		slices.Sort(got)
		if !slices.Equal(got, step.want) || differ != step.differ {
			t.Errorf("%s: %v are changed, %t; want %v, %t", step.name, got, differ, step.want, step.differ)
		}
		if err := table.Known(); err != nil || !table.Specs().Known() {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	for named, want := range map[string]kinds.Network{
		"a": {Name: "a", Egress: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}, "": {Name: "default"}, "b": {Name: "b"},
	} {
		if diff := cmp.Diff(want, table.Network(named), prefixes); diff != "" {
			t.Errorf("network %q (-want +got):\n%s", named, diff)
		}
	}
}
