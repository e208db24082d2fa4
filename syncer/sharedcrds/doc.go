// Package sharedcrds shares CRDs of the super cluster with tenants. A shared
// CRD is a copy in the tenant's control plane. [Lookup] decides whose CRD of a
// name the tenant uses. While the super cluster's replaces one of the tenant's
// own, the spec of that is kept in the root namespace.
//
// Every reconcile observes the tenant's CRD and its record, and executes one
// step after the other. Each step is one write that can be repeated, so the
// syncer may stop between any two.
package sharedcrds
