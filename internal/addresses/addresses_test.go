package addresses

import (
	"net/netip"
	"testing"
)

func TestIn(t *testing.T) {
	for _, tt := range []struct {
		cidr   string
		number int
		want   string // empty if there is none
	}{
		{"10.104.16.0/20", Apiserver, "10.104.16.1"},
		{"10.104.16.0/20", DNS, "10.104.16.10"},
		{"10.0.0.0/29", Apiserver, "10.0.0.1"},
		{"10.0.0.0/29", DNS, ""},
		{"255.255.255.248/29", DNS, ""},
		{"fd00::/112", DNS, "fd00::a"},
	} {
		got := In(netip.MustParsePrefix(tt.cidr), tt.number)
		if got.IsValid() != (tt.want != "") || got.IsValid() && got.String() != tt.want {
			t.Errorf("number %d of %s is %s, want %q", tt.number, tt.cidr, got, tt.want)
		}
	}
	if got := In(netip.Prefix{}, Apiserver); got.IsValid() {
		t.Errorf("of no range, the first is %s", got)
	}
}
