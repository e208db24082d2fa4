// Package hosted runs many Kubernetes control planes in one process.
//
// A [Host] owns embedded etcds, one for the super cluster and one for tenants,
// and one TLS port. Every [ControlPlane] on it is a complete, unmodified
// kube-apiserver with the usual controllers, a key prefix of its own in etcd,
// and a PKI of its own on disk. The router selects the control plane of a
// connection by its TLS server name (SNI), so a kubeconfig of a hosted control
// plane always sets tls-server-name.
//
// The failure of a control plane does not affect others: it closes Done, and
// Err returns the reason. Two hazards of the unmodified apiserver remain. A
// start hook that fails exits the process unless [ContainExit] is in place,
// which is why a stop waits for a start in progress; and the globals of
// Kubernetes (feature gates, klog, metrics) are shared.
//
// Control planes of a host share the process: its memory, its version of
// Kubernetes, its feature gates and its fate. Tenants that need more isolation
// belong on different hosts.
package hosted
