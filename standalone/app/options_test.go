package app

import (
	"strings"
	"testing"
)

// TestValidateNames: an error names the flag to change.
func TestValidateNames(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"images without a real node":  {func(o *Options) { o.NodeImages = "images" }, "--node-images is for --nodes real"},
		"a port beyond the last":      {func(o *Options) { o.Port = maxPort + 1 }, "--port is 65536"},
		"an agent's port beyond that": {func(o *Options) { o.AgentPort = maxPort + 1 }, "--agent-port is 65536"},
		"a negative agent's port":     {func(o *Options) { o.AgentPort = -1 }, "--agent-port is -1"},
		"a network that is none":      {func(o *Options) { o.TenantEgress = []string{"10.0.0.0"} }, "--tenant-egress-cidr"},
		"limits that are none":        {func(o *Options) { o.TenantLimits.Objects = -1 }, "--tenant-objects"},
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
		"the last port":         func(o *Options) { o.Port, o.AgentPort = maxPort, maxPort },
		"a free port":           func(o *Options) { o.Port, o.AgentPort = 0, 0 },
		"an address of IPv6":    func(o *Options) { o.Listen = "::1" },
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
