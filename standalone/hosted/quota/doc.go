// Package quota limits what each control plane of a host stores in etcd.
//
// A [Ledger] has the size of every record by its key. It reads them from the
// revisions that etcd keeps, and follows etcd's own stream of revisions, so
// that expired leases and deletions of prefixes count too. A [Guard] is a gRPC
// interceptor of etcd, through which every write of every control plane passes.
// It rejects writes that exceed a storage limit, or the pace at which old
// revisions can be compacted. Deletions and updates that do not grow a record
// are always admitted, so that a tenant can free space by itself.
package quota
