// Package resourcemetrics serves the resource metrics API (metrics.k8s.io) to
// tenants' apiservers, of what the super cluster's own one measures: the
// figures of a tenant's pods under the tenant's names, and of a node what the
// tenant's pods use there. It is an aggregated API, so the apiserver that asks
// has authenticated its user and checked its permissions.
package resourcemetrics
