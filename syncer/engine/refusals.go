package engine

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A refused object is tried again after refusedFirst, then after twice as long each time, up to refusedMost: somebody has to
// act first.
const (
	refusedFirst = time.Second
	refusedMost  = time.Minute
)

// refusals are the refused objects of a tenant, each with how long it waits before it is tried again.
type refusals struct{ *parked[time.Duration] }

func newRefusals(count func(kind string, by int)) *refusals {
	return &refusals{newParked[time.Duration](count)}
}

// next is how long the object waits this time.
func (r *refusals) next(kind string, key client.ObjectKey) time.Duration {
	return r.put(kind, key, func(was time.Duration) time.Duration { return min(max(2*was, refusedFirst), refusedMost) })
}
