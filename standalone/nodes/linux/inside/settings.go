// Package inside is process 1 of a real node. It sets up what is the node's own, starts containerd, kubelet and the others, starts
// them again when they end, and ends itself, and so the node, when its standard input does.
package inside

import (
	"net"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// Settings are what process 1 reads first from its standard input.
type Settings struct {
	// Name is the node's.
	Name string `json:"name"`
	// Programs is the directory of the node's programs and images.
	Programs string `json:"programs"`
	// Images is a directory with more archives of images; empty for none.
	Images string `json:"images,omitempty"`
	// State is the directory that the node sees as /var.
	State string `json:"state"`
	// Cgroup is the name of the cgroup below which the pods are.
	Cgroup string `json:"cgroup"`
	// PluginDirs are where CNI plugins are.
	PluginDirs []string `json:"pluginDirs"`
	// Nameservers answer for what is not in the cluster.
	Nameservers []string `json:"nameservers"`

	// Address is the node's own, and PodNetwork is for its pods.
	Address    net.IP `json:"address"`
	PodNetwork string `json:"podNetwork"`
	// ClusterDNS and ClusterDomain are what pods are told.
	ClusterDNS    net.IP `json:"clusterDNS"`
	ClusterDomain string `json:"clusterDomain"`

	// Server is the URL of the super cluster's apiserver, ServerName the name that is in its certificate, and CA who signed that.
	Server     string `json:"server"`
	ServerName string `json:"serverName"`
	CA         []byte `json:"ca"`
	// Kubelet, KubeProxy and Policies are how these programs show who they are; Serving is how the kubelet does to the apiserver.
	Kubelet   pki.KeyPair `json:"kubelet"`
	KubeProxy pki.KeyPair `json:"kubeProxy"`
	Policies  pki.KeyPair `json:"policies"`
	Serving   pki.KeyPair `json:"serving"`
}
