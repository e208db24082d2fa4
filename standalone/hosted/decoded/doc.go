// Package decoded remembers the objects that lists have decoded, so that a list
// does not decode again what has not changed.
//
// It is no watch cache: each list reads etcd, and so it is as consistent as
// one without the package. An object is found by all that decoding depends on,
// its encoding and its revision. So nothing has to be invalidated, and a tenant
// without requests has no objects here after a while.
package decoded
