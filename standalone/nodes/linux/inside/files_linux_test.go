package inside

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

func rendered(t *testing.T, name string) string {
	t.Helper()
	settings := &Settings{
		Name: "worker", Cgroup: "vc-node-7", PluginDirs: []string{"/a", "/b"}, Nameservers: []string{"192.0.2.1"},
		PodNetwork: "10.244.7.0/24", ClusterDNS: net.IPv4(10, 96, 0, 10), ClusterDomain: "cluster.local",
	}
	var text bytes.Buffer
	if err := template.Must(template.ParseFS(templates, "files/*")).ExecuteTemplate(&text, name, settings); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestConfiguration(t *testing.T) {
	for name, want := range map[string][]string{
		"kubelet.yaml":    {"cgroupRoot: /vc-node-7", "clusterDNS: [10.96.0.10]", "clusterDomain: cluster.local"},
		"kube-proxy.yaml": {"hostnameOverride: worker", "clusterCIDR: 10.244.7.0/24"},
		"containerd.toml": {`bin_dirs = ["/a", "/b", "/var/lib/cni/bin"]`},
		"bridge.conflist": {`"subnet": "10.244.7.0/24"`},
		"resolv.conf":     {"nameserver 192.0.2.1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := rendered(t, name)
			for _, part := range want {
				if !strings.Contains(text, part) {
					t.Errorf("%q is missing in:\n%s", part, text)
				}
			}
		})
	}
	for _, name := range []string{"kubelet.yaml", "kube-proxy.yaml"} {
		if err := yaml.Unmarshal([]byte(rendered(t, name)), &map[string]any{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !json.Valid([]byte(rendered(t, "bridge.conflist"))) {
		t.Error("bridge.conflist is no JSON")
	}
}
