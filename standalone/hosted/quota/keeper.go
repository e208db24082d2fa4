package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// keepInterval is how often a keeper checks its etcd. Younger revisions are
	// not compacted, for watches that lag a little.
	keepInterval = 5 * time.Second
	keepTimeout  = 2 * time.Minute
	// lowWater is the part of etcd's quota, in percent, below which etcd is
	// writable again.
	lowWater = 80
	percent  = 100
)

// Keeper keeps an etcd writable. It compacts old revisions before their time
// when they amount to much, and ends the alarm that etcd raises at its quota
// once there is room again, which etcd leaves to its operator.
type Keeper struct {
	Ledger   *Ledger
	Client   *clientv3.Client
	Endpoint string
	// Quota is etcd's own, of its file.
	Quota int64
	// MaxSuperseded are the bytes of old revisions that are worth a compaction.
	MaxSuperseded int64
	Log           logr.Logger

	compacted mark
	last      mark
}

// mark is how much was superseded up to a revision.
type mark struct{ superseded, revision int64 }

// Run keeps the etcd until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := k.keep(ctx); err != nil && ctx.Err() == nil {
				k.Log.Error(err, "Keep etcd writable")
			}
		}
	}
}

func (k *Keeper) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if err := k.compact(ctx); err != nil {
		return err
	}
	return k.Recover(ctx)
}

// compact drops the revisions before the previous check if they amount to much.
func (k *Keeper) compact(ctx context.Context) error {
	ready := k.last
	k.last.superseded, k.last.revision = k.Ledger.Superseded()
	if ready.superseded-k.compacted.superseded < k.MaxSuperseded {
		return nil
	}
	if _, err := k.Client.Compact(ctx, ready.revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd: %w", err)
	}
	k.compacted = ready
	return nil
}

// Recover ends the alarm of an etcd that has reached its quota, if enough of
// its records have been deleted.
func (k *Keeper) Recover(ctx context.Context) error {
	alarms, err := k.Client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list etcd's alarms: %w", err)
	}
	for _, alarm := range alarms.Alarms {
		if alarm.Alarm == pb.AlarmType_NOSPACE {
			return k.makeRoom(ctx, alarm)
		}
	}
	return nil
}

func (k *Keeper) makeRoom(ctx context.Context, alarm *pb.AlarmMember) error {
	status, err := k.Client.Status(ctx, k.Endpoint)
	if err != nil {
		return fmt.Errorf("read etcd's status: %w", err)
	}
	// Fails if there was no write since the last compaction.
	_, _ = k.Client.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical())
	if status, err = k.Client.Status(ctx, k.Endpoint); err != nil {
		return fmt.Errorf("read etcd's status: %w", err)
	}
	if status.DbSizeInUse*percent > k.Quota*lowWater {
		return fmt.Errorf("etcd has reached its quota of %s and rejects writes: delete objects or tenants, %s are in use",
			size(k.Quota), size(status.DbSizeInUse))
	}
	if _, err := k.Client.Defragment(ctx, k.Endpoint); err != nil {
		return fmt.Errorf("defragment etcd: %w", err)
	}
	if _, err := k.Client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
		return fmt.Errorf("end etcd's alarm: %w", err)
	}
	k.Log.Info("etcd had reached its quota, and is writable again")
	return nil
}
