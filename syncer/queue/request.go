// Package queue defines the requests in the syncer's queue, their priorities,
// and the order of objects that wait for validators.
package queue

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Priorities of requests in a tenant's lane. Deletions and events of the super
// cluster outrank changes made by the tenant: work under way is finished before
// new work begins. Periodic checks and reports come last.
const (
	PriorityHigh   = 1
	PriorityNormal = 0
	PriorityLow    = -1
)

// Request identifies one object of a tenant by the tenant's names, whichever
// side the event came from.
type Request struct {
	// Cluster is the cluster key of the tenant.
	Cluster multicluster.ClusterName
	// Kind is the name of a Kind.
	Kind string
	// Key is the key of the tenant's object.
	Key client.ObjectKey
}

// Lane returns the lane of the request in the queue, that of its tenant.
func (r Request) Lane() string { return string(r.Cluster) }

// String returns the form for logs.
func (r Request) String() string { return string(r.Cluster) + ": " + r.Kind + " " + r.Key.String() }
