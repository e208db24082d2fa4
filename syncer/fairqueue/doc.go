// Package fairqueue is a work queue that shares its workers fairly among
// tenants.
//
// Every key belongs to the lane of one tenant. Lanes that have work take turns
// by stride scheduling: each has a pass, the lane with the lowest is served, and
// its pass grows by a stride that is the shorter, the higher its weight. A key
// that turns out to cost more than others counts as so many. At most a fixed
// number of keys of one tenant are in workers' hands, so that a tenant whose
// apiserver hangs cannot hold them all; and tenants that answer slowly have
// workers of their own, so that many of them cannot either. Within a lane, keys
// of a higher priority go first, and one turn in sixteen goes to those they keep
// waiting.
//
// [Queue] implements controller-runtime's PriorityQueue, so that a controller
// uses it as it is and keeps its priorities. It starts no goroutine: delays and
// backoff share one timer.
package fairqueue
