package networks

import (
	"errors"
	"strings"
	"testing"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

func TestChecked(t *testing.T) {
	external := networkv1.NetworkSpec{Type: "mizar", Service: &networkv1.ServiceSpec{IPAM: networkv1.IPAMExternal}}
	for name, tc := range map[string]struct {
		spec     networkv1.NetworkSpec
		ip, want string
		bad      bool
	}{
		"IPv4":                        {external, "10.0.0.10", "10.0.0.10", false},
		"IPv6":                        {external, "FD00:0::10", "fd00::10", false},
		"IPv4 in IPv6":                {external, "::ffff:10.0.0.10", "10.0.0.10", false},
		"none":                        {external, "", "", false},
		"of the tenant's apiserver":   {networkv1.NetworkSpec{Type: "mizar"}, "10.0.0.10", "", false},
		"no address":                  {external, "dns", "", true},
		"a range":                     {external, "10.0.0.0/8", "", true},
		"loopback":                    {external, "127.0.0.1", "", true},
		"unspecified":                 {external, "0.0.0.0", "", true},
		"metadata of the cloud":       {external, "169.254.169.254", "", true},
		"multicast":                   {external, "224.0.0.1", "", true},
		"of an interface":             {external, "fe80::1%eth0", "", true},
		"loopback in IPv6 of IPv4":    {external, "::ffff:127.0.0.1", "", true},
		"long, and not the tenant's":  {networkv1.NetworkSpec{Type: "mizar"}, strings.Repeat("x", 5000), "", false},
		"long":                        {external, strings.Repeat("x", 5000), "", true},
		"an address with white space": {external, " 10.0.0.10", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := checked(network.Network{Spec: tc.spec}, network.State{Ready: true, DNSServiceIP: tc.ip})
			if errors.Is(err, errAddress) != tc.bad || got.DNSServiceIP != tc.want {
				t.Errorf("got %q, %v", got.DNSServiceIP, err)
			}
			if err != nil && len(err.Error()) > 200 {
				t.Errorf("the error has %d characters", len(err.Error()))
			}
		})
	}
}

func TestTold(t *testing.T) {
	for message, want := range map[string]string{
		"":                              "",
		"no such VPC":                   "no such VPC",
		" two\nlines\x1b[31m ":          "two lines [31m",
		strings.Repeat("x", 5000):       strings.Repeat("x", maxAnswer),
		strings.Repeat("é", maxAnswer):  strings.Repeat("é", maxAnswer/2),
		"a" + strings.Repeat("é", 1024): "a" + strings.Repeat("é", (maxAnswer-1)/2),
		"\xff":                          "",
	} {
		if got := told(message); got != want {
			t.Errorf("%.40q becomes %.40q, want %.40q", message, got, want)
		}
	}
}

func TestReasonOf(t *testing.T) {
	for reason, want := range map[string]string{
		"": plugins.ReasonQuotaExceeded, "VPCNotFound": "VPCNotFound", "no such VPC": "ProviderFailed", "Ready\n": "ProviderFailed",
		strings.Repeat("A", 64): "ProviderFailed",
	} {
		if got := reasonOf(&plugins.RejectionError{Reason: reason}); got != want {
			t.Errorf("%q becomes %q, want %q", reason, got, want)
		}
	}
}
