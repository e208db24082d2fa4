package host

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func TestOptions(t *testing.T) {
	const address = "--advertise-address=vc-host.vc-system.svc:443"
	for name, test := range map[string]struct {
		flags []string
		want  string // part of the error; empty for none
	}{
		"an address for clients":      {[]string{address}, ""},
		"all":                         {[]string{address, "--pod-address=10.0.0.9", "--internal-cidr=10.0.0.0/8", "--replica=a", "--peer-port=0"}, ""},
		"no address for clients":      {nil, "--advertise-address"},
		"an address without a port":   {[]string{"--advertise-address=vc-host"}, "--advertise-address"},
		"an address without a host":   {[]string{"--advertise-address=:443"}, "--advertise-address"},
		"an impossible port":          {[]string{"--advertise-address=a:99999"}, "--advertise-address"},
		"listening on a name":         {[]string{address, "--listen=localhost"}, "--listen"},
		"a negative port":             {[]string{address, "--port=-1"}, "--port is -1"},
		"a port that is too large":    {[]string{address, "--peer-port=65536"}, "--peer-port is 65536"},
		"a loopback address for pods": {[]string{address, "--pod-address=127.0.0.1"}, "--pod-address"},
		"a name for pods":             {[]string{address, "--pod-address=pod"}, "--pod-address"},
		"an agent without a CA":       {[]string{address, "--vn-agent-address=a:1"}, "need each other"},
		"a network that is none":      {[]string{address, "--internal-cidr=10.0.0.0"}, "--internal-cidr"},
		"a domain": {[]string{
			address, "--endpoint-domain=tenants.example.com", "--endpoint-port=8443", "--internal-address=a:443", "--pod-ports=20000-29999",
		}, ""},
		"an internal address without a port": {[]string{address, "--internal-address=vc-host"}, "--internal-address"},
		"a domain that is a wildcard":        {[]string{address, "--endpoint-domain=*.example.com"}, "--endpoint-domain"},
		"a domain in capitals":               {[]string{address, "--endpoint-domain=Example.com"}, "--endpoint-domain"},
		"a domain of one label":              {[]string{address, "--endpoint-domain=example"}, "--endpoint-domain"},
		"a domain that is an address":        {[]string{address, "--endpoint-domain=10.0.0.1"}, "it must be a DNS domain"},
		"a domain with a port":               {[]string{address, "--endpoint-domain=example.com:443"}, "--endpoint-domain"},
		"the domain of server names":         {[]string{address, "--endpoint-domain=vc.internal"}, "a domain of its own"},
		"the domain of Services":             {[]string{address, "--endpoint-domain=svc.cluster.local"}, "a domain of its own"},
		"a domain without room for names":    {[]string{address, "--endpoint-domain=" + strings.Repeat("a.", 95) + "a"}, "189 at most"},
		"an impossible port of the domain":   {[]string{address, "--endpoint-port=0"}, "--endpoint-port is 0"},
		"a range of ports that is none":      {[]string{address, "--pod-ports=9-1"}, "--pod-ports"},
		"an unknown isolation":               {[]string{address, "--tenant-isolation=None"}, "--tenant-isolation"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options, flags := DefaultOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
			options.AddFlags(flags)
			g.Expect(flags.Parse(test.flags)).To(Succeed())
			err := options.Validate()
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			}
		})
	}
}
