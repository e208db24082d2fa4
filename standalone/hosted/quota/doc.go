// Package quota limits what each control plane of a host stores in etcd.
//
// A [Ledger] knows the size of every record by its key. It learns them from the
// revisions that etcd keeps, and follows etcd's own stream of revisions, so that
// expired leases and deletions of prefixes count too. A [Guard] is a gRPC
// interceptor of etcd: every write of every control plane passes it, whichever
// part of an apiserver sends it. It rejects a write that grows what is stored
// beyond a limit, and one beyond the pace at which old revisions can be
// compacted. Deletions and updates that do not grow a record always pass, so
// that a tenant makes room by itself.
package quota
