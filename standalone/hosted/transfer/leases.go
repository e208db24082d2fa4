package transfer

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// shortest is how long a record with a lease exists at least after it was copied,
// in seconds: no record may expire before the copy is compared.
const shortest = 600

// leases grants a lease in one etcd for each of another one. Records with leases
// are Events, of which many share one.
type leases struct {
	from, to *clientv3.Client
	granted  map[int64]clientv3.LeaseID
}

// of returns the lease for the copy of a record.
func (l *leases) of(ctx context.Context, lease int64) (clientv3.LeaseID, error) {
	if lease == 0 {
		return clientv3.NoLease, nil
	}
	if id, ok := l.granted[lease]; ok {
		return id, nil
	}
	left, err := l.from.TimeToLive(ctx, clientv3.LeaseID(lease))
	if err != nil {
		return 0, fmt.Errorf("read the time of a lease: %w", err)
	}
	granted, err := l.to.Grant(ctx, max(left.TTL, shortest))
	if err != nil {
		return 0, fmt.Errorf("grant a lease: %w", err)
	}
	l.granted[lease] = granted.ID
	return granted.ID, nil
}
