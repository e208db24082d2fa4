// Package queue says what waits in the syncer's queue, in which order, and what waits for validators.
package queue

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Priorities of requests in a tenant's lane. What is gone, and what the super cluster says of a copy, comes before what the tenant makes,
// changes or begins to delete: what is under way is finished before more is begun. Last comes what is looked at again or only told.
const (
	PriorityHigh   = 1
	PriorityNormal = 0
	PriorityLow    = -1
)

// Request is one object of a tenant, named as the tenant names it, whichever side the event came from.
type Request struct {
	// Cluster is the tenant's cluster key.
	Cluster multicluster.ClusterName
	// Kind is the name of a Kind.
	Kind string
	// Key is the tenant's.
	Key client.ObjectKey
}

// Lane is the lane of the queue that a request waits in: the tenant's.
func (r Request) Lane() string { return string(r.Cluster) }

// String is for logs.
func (r Request) String() string { return string(r.Cluster) + ": " + r.Kind + " " + r.Key.String() }
