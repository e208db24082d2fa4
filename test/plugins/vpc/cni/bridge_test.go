package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestBridgeOf: a pod is connected to the VPC of its annotation with the
// address there, and to the node's own bridge without.
func TestBridgeOf(t *testing.T) {
	const conf = `{"type": "vpc-cni", "bridge": "cni0", "ipam": {"type": "host-local"}, "vpcs": {"vpc-1": "192.168.0.254/24"},
		"runtimeConfig": {"io.kubernetes.cri.pod-annotations": {%s}}}`
	const own = `arktos.futurewei.com/cni-args`
	for _, c := range []struct{ name, annotations, want, failure string }{
		{"of a VPC", `"` + own + `": "vpc=vpc-1;ip=192.168.0.12"`, "bridge vpc-1 static [map[address:192.168.0.12/24 gateway:192.168.0.254]]", ""},
		{"of another network", `"example.com/args": "vpc=vpc-1;ip=192.168.0.12"`, "bridge cni0 host-local <nil>", ""},
		{"of an unknown VPC", `"` + own + `": "vpc=vpc-2;ip=192.168.0.12"`, "", "not connected to VPC"},
		{"outside of its VPC", `"` + own + `": "vpc=vpc-1;ip=192.168.1.12"`, "", `"192.168.1.12" is not of VPC`},
		{"without an address", `"` + own + `": "vpc=vpc-1"`, "", `"" is not of VPC`},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := bridgeOf(fmt.Appendf(nil, conf, c.annotations))
			if c.failure != "" {
				if err == nil || !strings.Contains(err.Error(), c.failure) {
					t.Errorf("got %v; want an error with %q", err, c.failure)
				}
				return
			}
			got := map[string]any{}
			if err == nil {
				err = json.Unmarshal(data, &got)
			}
			if err != nil {
				t.Fatal(err)
			}
			ipam, _ := got["ipam"].(map[string]any)
			text := fmt.Sprintf("%v %v %v %v", got["type"], got["bridge"], ipam["type"], ipam["addresses"])
			if text != c.want {
				t.Errorf("got %s; want %s", text, c.want)
			}
		})
	}
}
