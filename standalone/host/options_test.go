package host

import (
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
		"an unknown isolation":        {[]string{address, "--tenant-isolation=None"}, "--tenant-isolation"},
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
