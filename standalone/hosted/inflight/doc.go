// Package inflight limits the requests that the tenants of a process have in
// flight: how many of each kind, and how much memory they take together.
//
// Upstream's own limits do not apply to cluster admins, and each tenant is one.
// A [Host] has the budget of a process, a [Tenant] the state of one control
// plane, and a [Filter] is the outermost part of a handler chain, of one tenant
// or of many. A request beyond a limit waits for a moment and is then rejected
// with 429. Under memory pressure, the tenant that takes the most is rejected
// first.
package inflight
