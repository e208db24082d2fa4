package pending

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A rejected object is retried after rejectedFirst, then after twice as long each time, up to rejectedMost: the tenant or an admin has
// to act first.
const (
	rejectedFirst = time.Second
	rejectedMost  = time.Minute
)

// Rejections are the rejected objects of a tenant, each with how long it waits before it is retried.
type Rejections struct{ *Set[time.Duration] }

// NewRejections makes the rejections of a tenant. It calls count when objects of a kind become rejected, or are no more.
func NewRejections(count func(kind string, by int)) *Rejections {
	return &Rejections{newSet[time.Duration](count)}
}

// Next returns how long the object waits this time.
func (r *Rejections) Next(kind string, key client.ObjectKey) time.Duration {
	return r.put(kind, key, func(was time.Duration) time.Duration { return min(max(2*was, rejectedFirst), rejectedMost) })
}
