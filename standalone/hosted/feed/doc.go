// Package feed passes the changes in the tenants' etcd to the parts of tenants
// that need them.
//
// A [Feed] has one watch of the whole store. A [Subscription] is for one
// resource of one tenant: a list at a revision, and then the changes after it,
// without a gap or a duplicate. It has no goroutine: changes wait in it,
// coalesced by record, until its owner receives them. A change that has no
// subscriber costs the split of its key and a lookup.
//
// The feed never waits for a subscriber, so a tenant cannot delay the changes
// of another.
package feed
