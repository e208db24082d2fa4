package egress

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

func external(t *testing.T, allowed ...string) *External {
	t.Helper()
	e, err := NewExternal(allowed, []string{"10.1.0.0/16", "198.51.100.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	e.Machine = func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("8.8.4.4")}, nil }
	return e
}

func TestExternal(t *testing.T) {
	none, private, all, loopback := external(t), external(t, "10.0.0.0/8", "8.8.4.4/32"), external(t, "0.0.0.0/0", "::/0"), external(t, "127.0.0.0/8", "::1/128")
	for name, tc := range map[string]struct {
		e    *External
		to   string
		want bool
	}{
		"a public address":                          {none, "8.8.8.8", true},
		"a public address in IPv6":                  {none, "2a00::1", true},
		"a private address":                         {none, "10.200.0.1", false},
		"a private address, mapped":                 {none, "::ffff:192.168.0.1", false},
		"a private address, behind NAT64":           {none, "64:ff9b::10.200.0.1", false},
		"a private address in IPv6":                 {none, "fd00::1", false},
		"a provider's address":                      {none, "100.64.0.1", false},
		"a Service that has a public address":       {none, "198.51.100.1", false},
		"this machine":                              {none, "8.8.4.4", false},
		"loopback":                                  {none, "127.0.0.1", false},
		"what the admin allows":                     {private, "10.200.0.1", true},
		"a pod, if the admin allows it":             {private, "10.1.0.1", true},
		"this machine, if the admin allows it":      {private, "8.8.4.4", true},
		"what the admin does not allow":             {private, "192.168.0.1", false},
		"everything private, if all is allowed":     {all, "192.168.0.1", true},
		"loopback, if all is allowed":               {all, "127.0.0.1", false},
		"loopback in IPv6, if all is allowed":       {all, "::1", false},
		"loopback, mapped, if all is allowed":       {all, "::ffff:127.0.0.1", false},
		"metadata, if all is allowed":               {all, "169.254.169.254", false},
		"metadata in IPv6, if all is allowed":       {all, "fd00:ec2::254", false},
		"link-local, if all is allowed":             {all, "fe80::1", false},
		"the unspecified address":                   {all, "0.0.0.0", false},
		"loopback, if the admin allows it":          {loopback, "127.0.0.1", true},
		"loopback in IPv6, if the admin allows it":  {loopback, "::1", true},
		"private addresses, if loopback is allowed": {loopback, "10.200.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.e.allows(netip.MustParseAddr(tc.to)); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.to, got, tc.want)
			}
		})
	}
	if all.allows(netip.Addr{}) {
		t.Error("an invalid address is allowed")
	}
	none.Machine = func() ([]netip.Addr, error) { return nil, net.ErrClosed }
	if none.allows(netip.MustParseAddr("8.8.8.8")) {
		t.Error("an address is allowed that may be this machine's")
	}
}

func TestNewExternal(t *testing.T) {
	e, err := NewExternal([]string{"10.8.0.7/16", "127.0.0.0/8"}, nil)
	if err != nil || fmt.Sprint(e.Allowed) != "[10.8.0.0/16 127.0.0.0/8]" {
		t.Errorf("got %v, %v", e, err)
	}
	for _, cidr := range []string{"10.8.0.7", "169.254.169.254/32", "fe80::/64", "::ffff:10.0.0.0/104"} {
		if _, err := NewExternal([]string{cidr}, nil); err == nil {
			t.Errorf("%s is accepted", cidr)
		}
	}
	if _, err := NewExternal(nil, []string{"10.8.0.7"}); err == nil {
		t.Error("an internal network that is none is accepted")
	}
}

// TestExternalDial: the address is checked after the name was resolved, and the
// error does not reveal whether it was.
func TestExternalDial(t *testing.T) {
	_, port, _ := net.SplitHostPort(trap(t))
	for _, host := range []string{"127.0.0.1", "localhost", "no-such-host.invalid"} {
		conn, err := external(t).Dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		if conn != nil || err != ErrExternalAddress { //nolint:errorlint // no wrapper may add the address
			t.Errorf("%s: got %v", host, err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := external(t, "127.0.0.0/8").Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatalf("what the admin allows: %v", err)
	}
	_ = conn.Close()
}
