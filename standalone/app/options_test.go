package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/virtualcluster/virtualcluster/config/servicecidr"
)

// TestValidateNames: an error names the flag to change.
func TestValidateNames(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"images without a real node":   {func(o *Options) { o.NodeImages = "images" }, "--node-images is for --nodes real"},
		"a port beyond the last":       {func(o *Options) { o.Port = maxPort + 1 }, "--port is 65536"},
		"a gateway's port beyond that": {func(o *Options) { o.GatewayPort = maxPort + 1 }, "--gateway-port is 65536"},
		"an agent's port beyond that":  {func(o *Options) { o.AgentPort = maxPort + 1 }, "--agent-port is 65536"},
		"a negative agent's port":      {func(o *Options) { o.AgentPort = -1 }, "--agent-port is -1"},
		"a network that is none":       {func(o *Options) { o.TenantEgress = []string{"10.0.0.0"} }, "--tenant-egress-cidr"},
		"a sleep that is too short":    {func(o *Options) { o.SleepAfterIdle = time.Second }, "--sleep-after-idle is 1s"},
		"limits that are none":         {func(o *Options) { o.TenantLimits.Objects = -1 }, "--tenant-objects"},
		"a pool that is none":          {func(o *Options) { o.ManagerOptions.ServiceCIDRPool = "" }, `--service-cidr-pool is ""`},
		"a second pool of one family": {
			func(o *Options) { o.ManagerOptions.SecondaryServiceCIDRPool = "10.112.0.0/13" }, "of the other IP family",
		},
		"a second pool of Services": {func(o *Options) { o.ManagerOptions.SecondaryServiceCIDRPool = "fd00:10::/32" }, "overlaps with fd00:10:96::/112"},
		"a second pool on a real node": {
			func(o *Options) {
				o.ManagerOptions.SecondaryServiceCIDRPool = "fd00:64::/107"
				o.Nodes = Nodes{Real: true}
			}, "for simulated nodes",
		},
		"a pool of IPv6 on a real node": {func(o *Options) {
			o.ManagerOptions.ServiceCIDRPool, o.ManagerOptions.ServiceCIDRPrefix, o.Nodes.Real = "fd00:64::/107", 118, true
		}, "IPv6 is for simulated nodes"},
		"a pool of IPv6 that is the super cluster's": {func(o *Options) {
			o.ManagerOptions.ServiceCIDRPool, o.ManagerOptions.ServiceCIDRPrefix = "fd00:10:96::/107", 118
		}, "overlaps with fd00:10:96::/112"},
		"a pool of Services":       {func(o *Options) { o.ManagerOptions.ServiceCIDRPool = "10.64.0.0/10" }, "overlaps with 10.96.0.0/16"},
		"a pool of pods":           {func(o *Options) { o.ManagerOptions.ServiceCIDRPool = "10.192.0.0/10" }, "overlaps with 10.128.0.0/9"},
		"parts of the whole":       {func(o *Options) { o.ManagerOptions.ServiceCIDRPrefix = 8 }, "larger than the whole"},
		"an unknown DNS":           {func(o *Options) { o.TenantDNS = "none" }, `--tenant-dns is "none"`},
		"a DNS on simulated nodes": {func(o *Options) { o.TenantDNS = "dedicated" }, "--tenant-dns=dedicated is for --nodes real"},
		"an unknown isolation":     {func(o *Options) { o.TenantIsolation = "shared" }, `--tenant-isolation is "shared"`},
	} {
		t.Run(name, func(t *testing.T) {
			opts := DefaultOptions()
			opts.DataDir = "somewhere"
			c.change(&opts)
			if err := opts.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestValidOptions: settings at the edge of what is allowed.
func TestValidOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"images of a real node": func(o *Options) { o.Nodes, o.NodeImages = Nodes{Real: true}, "images" },
		"a DNS for each tenant": func(o *Options) { o.Nodes, o.TenantDNS = Nodes{Real: true}, "dedicated" },
		"a DNS elsewhere":       func(o *Options) { o.TenantDNS = "shared" },
		"the last port":         func(o *Options) { o.Port, o.AgentPort = maxPort, maxPort },
		"a free port":           func(o *Options) { o.Port, o.AgentPort = 0, 0 },
		"an address of IPv6":    func(o *Options) { o.Listen = "::1" },
		"no sleep":              func(o *Options) { o.SleepAfterIdle = 0 },
		"a short sleep":         func(o *Options) { o.SleepAfterIdle = 10 * time.Second },
		"the pool of a manager": func(o *Options) { o.ManagerOptions.ServiceCIDRPool = servicecidr.DefaultPool },
		"networks":              func(o *Options) { o.TenantEgress = []string{"192.0.2.0/24", "2001:db8::/32"} },
	} {
		t.Run(name, func(t *testing.T) {
			opts := DefaultOptions()
			opts.DataDir = "somewhere"
			change(&opts)
			if err := opts.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestVersion: the flag is the command's own.
func TestVersion(t *testing.T) {
	command := NewCommand()
	var printed strings.Builder
	command.SetOut(&printed)
	command.SetArgs([]string{"--version"})
	if err := command.Execute(); err != nil || !strings.HasPrefix(printed.String(), name+" version ") {
		t.Errorf("printed %q: %v", printed.String(), err)
	}
}

// TestTenantDNS: tenants on a real node share a DNS unless the installation says
// otherwise.
func TestTenantDNS(t *testing.T) {
	for _, tt := range []struct {
		real   bool
		choice string
		bare   bool
		want   bool
	}{
		{true, "", false, true},
		{true, "", true, false},
		{true, "shared", false, true},
		{true, "dedicated", false, false},
		{false, "", false, false},
		{false, "shared", false, true},
	} {
		o := Options{Nodes: Nodes{Real: tt.real}, TenantDNS: tt.choice, Bare: tt.bare}
		if got := o.sharedDNS(); got != tt.want {
			t.Errorf("with a real node (%t), %q, and a bare cluster (%t), the DNS is shared: %t", tt.real, tt.choice, tt.bare, got)
		}
	}
}

// TestImageOfNodes: real nodes run an image that they have, and simulated ones
// pull none.
func TestImageOfNodes(t *testing.T) {
	if image := (&Nodes{Real: true}).image(); !strings.Contains(image, "agnhost") {
		t.Errorf("a real node runs %s", image)
	}
	if image := (&Nodes{Simulated: 3}).image(); !strings.Contains(image, ".example/") {
		t.Errorf("simulated nodes run %s, which exists", image)
	}
}

// TestFlags: every setting that has a flag is set by it, and no flag sets
// another one.
func TestFlags(t *testing.T) {
	for flag, change := range map[string]func(*Options){
		"--sleep-after-idle=30m":          func(o *Options) { o.SleepAfterIdle = 30 * time.Minute },
		"--data-dir=d":                    func(o *Options) { o.DataDir = "d" },
		"--nodes=real":                    func(o *Options) { o.Nodes = Nodes{Real: true} },
		"--nodes=0":                       func(o *Options) { o.Nodes = Nodes{} },
		"--node-images=i":                 func(o *Options) { o.NodeImages = "i" },
		"--listen=::1":                    func(o *Options) { o.Listen = "::1" },
		"--port=7":                        func(o *Options) { o.Port = 7 },
		"--manager=false":                 func(o *Options) { o.Manager = false },
		"--syncer=false":                  func(o *Options) { o.Syncer = false },
		"--agent=false":                   func(o *Options) { o.Agent = false },
		"--agent-port=7":                  func(o *Options) { o.AgentPort = 7 },
		"--vn-agent-address=192.0.2.1:7":  func(o *Options) { o.SyncerOptions.AgentAddress = "192.0.2.1:7" },
		"--service-cidr-pool=10.0.0.0/10": func(o *Options) { o.ManagerOptions.ServiceCIDRPool = "10.0.0.0/10" },
		"--service-cidr-prefix=24":        func(o *Options) { o.ManagerOptions.ServiceCIDRPrefix = 24 },
		"--workers=7":                     func(o *Options) { o.SyncerOptions.Workers = 7 },
		"--tenant-isolation=Dedicated":    func(o *Options) { o.TenantIsolation = "Dedicated" },
		"--tenant-dns=dedicated":          func(o *Options) { o.TenantDNS = "dedicated" },
		"--tenant-objects=7":              func(o *Options) { o.TenantLimits.Objects = 7 },
		"--external-cidr=127.0.0.0/8":     func(o *Options) { o.GatewayOptions.External = []string{"127.0.0.0/8"} },
		"-v=7":                            func(o *Options) { o.Verbosity = 7 },
		"--tenant-egress-cidr=192.0.2.0/24,2001:db8::/32": func(o *Options) { o.TenantEgress = []string{"192.0.2.0/24", "2001:db8::/32"} },
	} {
		t.Run(flag, func(t *testing.T) {
			got, want := DefaultOptions(), DefaultOptions()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			got.AddFlags(flags)
			if err := flags.Parse([]string{flag}); err != nil {
				t.Fatal(err)
			}
			change(&want)
			want.AddFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // quantities keep their text from then on
			if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
	}
}
