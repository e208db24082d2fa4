// Package stream serves the changes of many kinds of one tenant in one
// response, in the format of watchstream. It reads them from the feed of the
// tenants' etcd, so that a tenant that does not change costs one request and
// one goroutine for all kinds.
//
// An [Endpoint] belongs to one tenant: no part of a request names a tenant. It
// answers connections of the platform only, and passes all others to the
// apiserver, which has no such resource.
package stream
