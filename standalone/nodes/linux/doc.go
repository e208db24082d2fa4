// Package linux gives a super cluster a node that runs containers: containerd,
// kubelet, kube-proxy and an enforcer of NetworkPolicies, in Linux namespaces
// of their own. Processes, mounts, links and packet filters live as long as the
// namespaces, and these as long as this process, however it ends.
package linux
