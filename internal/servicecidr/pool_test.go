package servicecidr

import (
	"net/netip"
	"strings"
	"testing"
)

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, one := range all {
		out[i] = netip.MustParsePrefix(one)
	}
	return out
}

func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		pool  string
		bits  int
		taken []string
		want  string
	}{
		"the first":               {"10.96.0.0/14", 20, nil, "10.96.0.0/20"},
		"behind the first":        {"10.96.0.0/14", 20, []string{"10.96.0.0/20"}, "10.96.16.0/20"},
		"in a gap":                {"10.96.0.0/14", 20, []string{"10.96.0.0/20", "10.96.32.0/20"}, "10.96.16.0/20"},
		"behind a larger one":     {"10.96.0.0/14", 20, []string{"10.96.0.0/16"}, "10.97.0.0/20"},
		"behind a smaller one":    {"10.96.0.0/14", 20, []string{"10.96.0.0/28"}, "10.96.16.0/20"},
		"not bothered by others":  {"10.96.0.0/14", 20, []string{"192.168.0.0/16", "fd00::/108"}, "10.96.0.0/20"},
		"none left":               {"10.96.0.0/19", 20, []string{"10.96.0.0/20", "10.96.16.0/20"}, ""},
		"the whole at once":       {"10.96.0.0/20", 20, nil, "10.96.0.0/20"},
		"at the end of addresses": {"255.255.240.0/20", 20, []string{"255.255.240.0/20"}, ""},
		"one that contains all":   {"10.96.0.0/14", 20, []string{"10.0.0.0/8"}, ""},
		"IPv6":                    {"fd00::/104", 112, []string{"fd00::/112"}, "fd00::1:0/112"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := Pool{CIDR: netip.MustParsePrefix(c.pool), PartBits: c.bits}
			got, err := pool.Next(prefixes(c.taken...))
			switch {
			case c.want == "" && err == nil:
				t.Errorf("got %s, want none", got)
			case c.want != "" && (err != nil || got.String() != c.want):
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

// TestNextNeverOverlaps: no two parts have an address in common.
func TestNextNeverOverlaps(t *testing.T) {
	pool := Pool{CIDR: netip.MustParsePrefix("10.96.0.0/14"), PartBits: 20}
	taken := prefixes("10.96.8.0/24", "10.97.0.0/17")
	for {
		part, err := pool.Next(taken)
		if err != nil {
			break
		}
		if Overlaps(part, taken) || !pool.Contains(part) {
			t.Fatalf("%s overlaps with one of %s, or is outside of the pool", part, taken)
		}
		taken = append(taken, part)
	}
	if got, want := len(taken), 2+64-1-8; got != want {
		t.Errorf("%d parts, want %d", got, want)
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		pool string
		bits int
		want string // in the error; empty if there is none
	}{
		"nothing":         {},
		"fine":            {"10.96.0.0/12", 20, ""},
		"host bits":       {"10.96.0.7/12", 20, "host bits"},
		"parts too large": {"10.96.0.0/16", 12, "larger than the whole"},
		"parts too small": {"10.96.0.0/16", 30, "/12 to /29"},
		"much too large":  {"10.0.0.0/8", 11, "/12 to /29"},
		"IPv6":            {"fd00::/64", 96, "/108 to /125"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := Pool{PartBits: c.bits}
			if c.pool != "" {
				pool.CIDR = netip.MustParsePrefix(c.pool)
			}
			err := pool.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
