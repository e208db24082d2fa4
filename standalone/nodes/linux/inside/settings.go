// Package inside is process 1 of a real node. It sets up the namespaces of the
// node, starts containerd, kubelet and the other programs, restarts those that
// exit, and exits itself, which stops the node, when its standard input ends.
package inside

import (
	"net"
	"os"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// Settings is what process 1 reads from its standard input at start.
type Settings struct {
	// Name is the name of the node.
	Name string `json:"name"`
	// Programs is the directory of the node's programs and images.
	Programs string `json:"programs"`
	// Images is a directory with additional image archives; empty for none.
	Images string `json:"images,omitempty"`
	// State is the directory that the node mounts as /var.
	State string `json:"state"`
	// Cgroup is the name of the parent cgroup of the pods.
	Cgroup string `json:"cgroup"`
	// PluginDirs are the directories of CNI plugins.
	PluginDirs []string `json:"pluginDirs"`
	// Nameservers resolve names outside the cluster.
	Nameservers []string `json:"nameservers"`

	// Address is the address of the node, PodNetwork the CIDR of its pods.
	Address    net.IP `json:"address"`
	PodNetwork string `json:"podNetwork"`
	// ClusterDNS and ClusterDomain configure the DNS of pods.
	ClusterDNS    net.IP `json:"clusterDNS"`
	ClusterDomain string `json:"clusterDomain"`

	// Server is the URL of the super cluster's apiserver, ServerName the name
	// in its certificate, and CA the authority that signed it.
	Server     string `json:"server"`
	ServerName string `json:"serverName"`
	CA         []byte `json:"ca"`
	// Kubelet, KubeProxy and Policies are the client certificates of these
	// programs; Serving is the serving certificate of the kubelet.
	Kubelet   pki.KeyPair `json:"kubelet"`
	KubeProxy pki.KeyPair `json:"kubeProxy"`
	Policies  pki.KeyPair `json:"policies"`
	Serving   pki.KeyPair `json:"serving"`
}

// IPv6 reports whether the kernel has IPv6. Links of pods are without it, since
// NetworkPolicies do not see the addresses that it gives to each link.
func (*Settings) IPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return err == nil
}
