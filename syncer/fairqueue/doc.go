// Package fairqueue provides a work queue that shares its workers fairly among
// tenants.
//
// Every key belongs to the lane of one tenant. Lanes that have work take turns
// by stride scheduling: each has a pass, the lane with the lowest pass is
// served, and its pass grows by a stride that is inversely proportional to its
// weight. An expensive key can be charged as several. The number of keys in
// flight is capped for each tenant, so that a tenant whose apiserver hangs
// cannot occupy all workers; and slow tenants have workers of their own, so
// that many of them cannot either. Within a lane, keys of higher priority go
// first, but every sixteenth turn goes to a lower level that waits.
//
// [Queue] implements controller-runtime's PriorityQueue, so that a controller
// uses it unchanged and keeps its priorities. It starts no goroutines: delays
// and backoff share one timer.
package fairqueue
