// Package linux gives a super cluster a node that runs containers: containerd, kubelet, kube-proxy and what enforces NetworkPolicies, in
// Linux namespaces of their own. Processes, mounts, links and packet filters live and die with the namespaces, and those with this
// process, however it ends.
package linux
