// Package transfer moves the data of a tenant from one etcd to another, so that
// the tenant's clients miss no change.
//
// Each etcd has a [Side] of a tenant. A side that is sealed rejects writes of
// apiservers, whichever process they come from: the seal is a key in the etcd
// that every write of a client with a [Guard] checks. The side that a tenant
// leaves is sealed before the copy, and the other one until it has all of it.
//
// Resource versions are revisions of the etcd. Those of the old etcd have to be
// smaller than those of the new one, see [Raise], and count as compacted there,
// so that clients list again.
//
// Each attempt to move a tenant has a number. A side rejects earlier attempts,
// such as those of a process that was suspended meanwhile.
package transfer
