package quota

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// keepInterval is the interval between checks of etcd. Younger revisions
	// are not compacted, for watches that lag a little.
	keepInterval = 5 * time.Second
	keepTimeout  = 2 * time.Minute
	// statusTimeout limits the wait for a member's status.
	statusTimeout = 5 * time.Second
	// retention is how long revisions are kept at least, as by kube-apiserver.
	// It keeps them for less than twice that, and clients rely on both: a page
	// of a list can be continued for a while, and not much longer. Etcd's own
	// periodic compaction can take longer.
	retention = 5 * time.Minute
	// markInterval is the interval between two revisions that are compacted
	// later.
	markInterval = retention / 2
	// compactedKey is the key of the record that has the compacted revision.
	compactedKey = "compact_rev_key"
	// lowWater is the percentage of etcd's quota below which etcd becomes
	// writable again.
	lowWater = 80
	percent  = 100
)

// Keeper keeps an etcd writable. It compacts old revisions, early when they take
// much space, and disarms the alarm that etcd raises at its quota once space
// has been freed, which etcd leaves to its operator.
type Keeper struct {
	Client *clientv3.Client
	// Endpoints are those of all members.
	Endpoints []string
	// History returns how many bytes have been overwritten or deleted up to a
	// revision, which is the latest.
	History func(ctx context.Context) (superseded, revision int64, err error)
	// Quota is etcd's own quota of its file.
	Quota int64
	// MaxSuperseded is the number of bytes of old revisions that triggers a
	// compaction.
	MaxSuperseded int64
	Log           logr.Logger

	compacted mark
	// announced is the last compacted revision that was announced.
	announced int64
	last      mark
	// marks are to be compacted when they are old enough, the oldest first.
	marks []mark
}

// mark is the number of superseded bytes up to a revision.
type mark struct {
	superseded, revision int64
	at                   time.Time
}

// Run keeps the etcd writable until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := k.keep(ctx); err != nil && ctx.Err() == nil {
				k.Log.Error(err, "Failed to keep etcd writable, will retry")
			}
		}
	}
}

func (k *Keeper) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if err := k.compact(ctx, time.Now()); err != nil {
		return err
	}
	if err := k.Recover(ctx); err != nil { // without space, nothing can be announced
		return err
	}
	return k.announce(ctx)
}

// compact compacts old revisions, and those before the previous check if they
// take much space.
func (k *Keeper) compact(ctx context.Context, now time.Time) error {
	superseded, revision, err := k.History(ctx)
	if err != nil {
		return fmt.Errorf("read etcd's revision: %w", err)
	}
	ready := k.last
	k.last = mark{superseded: superseded, revision: revision, at: now}
	if n := len(k.marks); n == 0 || now.Sub(k.marks[n-1].at) >= markInterval {
		k.marks = append(k.marks, k.last)
	}
	if ready.superseded-k.compacted.superseded >= k.MaxSuperseded {
		return k.compactTo(ctx, ready)
	}
	oldest := k.marks[0]
	if now.Sub(oldest.at) < retention {
		return nil
	}
	if err := k.compactTo(ctx, oldest); err != nil {
		return err
	}
	k.marks = k.marks[1:]
	return nil
}

// compactTo compacts the revisions before a mark.
func (k *Keeper) compactTo(ctx context.Context, to mark) error {
	if to.revision <= k.compacted.revision {
		return nil
	}
	if _, err := k.Client.Compact(ctx, to.revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd: %w", err)
	}
	k.compacted = to
	return nil
}

// announce tells apiservers what is compacted, by the record through which
// kube-apiservers tell each other, so that only one of them compacts. They drop
// the older states that their caches have, from which they would continue lists.
func (k *Keeper) announce(ctx context.Context) error {
	if k.announced == k.compacted.revision {
		return nil
	}
	if _, err := k.Client.Put(ctx, compactedKey, strconv.FormatInt(k.compacted.revision, 10)); err != nil {
		return fmt.Errorf("tell apiservers what is compacted: %w", err)
	}
	k.announced = k.compacted.revision
	return nil
}

// Recover disarms the alarm of an etcd that has reached its quota, if enough
// records have been deleted.
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
	status, err := k.status(ctx)
	if err != nil {
		return err
	}
	// Fails if there was no write since the last compaction.
	_, _ = k.Client.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical())
	if status, err = k.status(ctx); err != nil {
		return err
	}
	if status.DbSizeInUse*percent > k.Quota*lowWater {
		return fmt.Errorf("etcd has reached its quota of %s and rejects writes: delete objects or tenants, %s are in use",
			size(k.Quota), size(status.DbSizeInUse))
	}
	for _, endpoint := range k.Endpoints { // one after the other: a member does not respond meanwhile
		if _, err := k.Client.Defragment(ctx, endpoint); err != nil {
			return fmt.Errorf("defragment etcd at %s: %w", endpoint, err)
		}
	}
	if _, err := k.Client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
		return fmt.Errorf("disarm etcd's alarm: %w", err)
	}
	k.Log.Info("Etcd had reached its quota, and is writable again")
	return nil
}

// status returns the status of the first member that responds.
func (k *Keeper) status(ctx context.Context) (*clientv3.StatusResponse, error) {
	return StatusOf(ctx, k.Client, k.Endpoints)
}

// StatusOf returns the status of the first member of an etcd that responds.
func StatusOf(ctx context.Context, client *clientv3.Client, endpoints []string) (*clientv3.StatusResponse, error) {
	var errs []error
	for _, endpoint := range endpoints {
		status, err := statusOf(ctx, client, endpoint)
		if err == nil {
			return status, nil
		}
		errs = append(errs, fmt.Errorf("read etcd's status at %s: %w", endpoint, err))
	}
	return nil, errors.Join(errs...)
}

func statusOf(ctx context.Context, client *clientv3.Client, endpoint string) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return client.Status(ctx, endpoint)
}
