// Package views has informers without goroutines. [Views] are those of one
// tenant, fed by the one watch of the tenants' etcd, for unmodified controllers
// and admission plugins of Kubernetes.
//
// A view lists its objects when they are first read, or when a handler is
// started. A view that is only requested, as admission plugins do with most of
// theirs, costs next to nothing.
//
// A tenant's changes are decoded by one goroutine that exists only while there
// are any, and each handler is called by another such goroutine. Changes that
// wait are coalesced by object, so that they need no more memory than the
// objects. A handler that blocks or panics, and an object that cannot be
// decoded, affect neither the other handlers nor other tenants.
//
// There are two differences from stock informers. An object that is deleted and
// created again may be one change, which handlers see as a deletion and an
// addition. And there are no resyncs.
package views
