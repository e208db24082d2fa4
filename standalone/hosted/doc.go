// Package hosted runs many Kubernetes control planes in one process.
//
// A [Host] owns embedded etcds, one for the super cluster and one for tenants,
// and one TLS port. Every [ControlPlane] on it is a complete, unmodified
// kube-apiserver with the usual controllers, a key prefix of its own in etcd, and
// a PKI of its own on disk. Connections find their control plane by the server
// name (SNI) that the client asks for, so a kubeconfig of a hosted control plane
// always carries tls-server-name.
//
// A control plane that fails ends alone: Done is closed and Err tells why. Two
// hazards of the unmodified apiserver remain. A start-up hook that fails ends
// the process unless [ContainExit] is in place, which is why a stop waits for a
// start that is under way; and what Kubernetes keeps per process (feature
// gates, klog, metrics) is one for all.
//
// Control planes of a host share the process: its memory, its version of
// Kubernetes, its feature gates and its fate. What a tenant needs kept apart
// for good belongs into another host.
package hosted
