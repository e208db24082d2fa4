package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const (
	// SealRoot is the prefix of the keys that seal sides; the name of a tenant
	// follows.
	SealRoot = "/sealed/"
	// RecordRoot is the prefix of the keys with the records of sides; the name of
	// a tenant follows.
	RecordRoot = "/moves/"
	// updates is how often the record of a side is read again if it has changed.
	updates = 5
)

var (
	// ErrSuperseded means that a later attempt has changed a side.
	ErrSuperseded = errors.New("a later attempt moves the data of the control plane")
	// ErrElsewhere means that a side does not have all of the data.
	ErrElsewhere = errors.New("the data of the control plane is in another store")
	// ErrInUse means that a side has data that a control plane may use.
	ErrInUse = errors.New("the store has data of the control plane that is in use")
	errBusy  = errors.New("the record of the move changes all the time")
)

// Side is the data of a tenant in an etcd.
type Side struct {
	// Client reaches all keys of the etcd.
	Client *clientv3.Client
	Tenant string
}

// record is what a side remembers of moves.
type record struct {
	// Attempt is the latest attempt that has changed the side.
	Attempt int64 `json:"attempt"`
	// Since is the first revision of the tenant's data here, if it has come from
	// another etcd.
	Since int64 `json:"since,omitempty"`
	// Complete: a side that is sealed has all of the data.
	Complete bool `json:"complete,omitempty"`
}

// State is what a control plane needs to know before it uses a side.
type State struct {
	// Sealed: the data is elsewhere, or not complete.
	Sealed bool
	// Since is the first revision of the data; 0 for any.
	Since int64
	// Attempt is the last attempt that has changed the side.
	Attempt int64
	// Complete: the side has all of the data, as of when it was sealed.
	Complete bool
	// Empty: it has no data.
	Empty bool
}

// InUse reports whether a control plane can have used the data.
func (s State) InUse() bool { return !s.Sealed && !s.Empty }

func (s Side) seal() string     { return SealRoot + s.Tenant }
func (s Side) recordAt() string { return RecordRoot + s.Tenant }
func (s Side) prefix() string   { return keyspace.Prefix(s.Tenant) + "/" }

// State reads the state of a side.
func (s Side) State(ctx context.Context) (State, error) {
	response, err := s.Client.Txn(ctx).Then(
		clientv3.OpGet(s.seal(), clientv3.WithCountOnly()), clientv3.OpGet(s.recordAt()),
		clientv3.OpGet(s.prefix(), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return State{}, fmt.Errorf("read where the data of control plane %q is: %w", s.Tenant, err)
	}
	kept, err := decodeRecord(response.Responses[1].GetResponseRange().Kvs)
	return State{
		Sealed: response.Responses[0].GetResponseRange().Count > 0, Empty: len(response.Responses[2].GetResponseRange().Kvs) == 0,
		Since: kept.Since, Attempt: kept.Attempt, Complete: kept.Complete,
	}, err
}

// Seal has the etcd reject all further writes of apiservers to a side, and
// returns the revision from which on that holds. It fails for a side that is
// sealed and not complete.
func (s Side) Seal(ctx context.Context, attempt int64) (revision int64, err error) {
	if err = s.checkComplete(ctx); err == nil {
		revision, err = s.update(ctx, attempt, func(r *record) { r.Complete = true }, s.putSeal())
	}
	return revision, wrap(err, "seal the data", s)
}

// Open allows writes of apiservers again. It fails for a side that is not
// complete.
func (s Side) Open(ctx context.Context, attempt int64) error {
	err := s.checkComplete(ctx)
	if err == nil {
		_, err = s.update(ctx, attempt, func(*record) {}, clientv3.OpDelete(s.seal()))
	}
	return wrap(err, "open the data", s)
}

// checkComplete returns an error for a side without all of the data: what knows
// of the moves, such as a restored backup, can be older than they are.
func (s Side) checkComplete(ctx context.Context) error {
	state, err := s.State(ctx)
	if err == nil && state.Sealed && !state.Complete {
		err = ErrElsewhere
	}
	return err
}

// CheckUnused returns an error for a side with data that is in use.
func (s Side) CheckUnused(ctx context.Context) error {
	state, err := s.State(ctx)
	if err == nil && state.InUse() {
		err = wrap(ErrInUse, "replace the data", s)
	}
	return err
}

// Clear deletes the data of a side that is not in use, and seals it. It returns the
// revision of that. An etcd that is full rejects that, but the data of a side that
// is sealed is deleted even so, which makes room for the next attempt.
func (s Side) Clear(ctx context.Context, attempt int64) (revision int64, err error) {
	if err := s.CheckUnused(ctx); err != nil {
		return 0, err
	}
	revision, err = s.update(ctx, attempt, func(r *record) { r.Since, r.Complete = 0, false }, s.putSeal(), s.deleteData())
	if errors.Is(err, rpctypes.ErrNoSpace) {
		err = errors.Join(err, s.deleteSealed(ctx, attempt))
	}
	return revision, wrap(err, "delete the data", s)
}

// deleteSealed deletes the data of a side that is sealed, without a write: that is
// all that a full etcd does. A later attempt prevents it.
func (s Side) deleteSealed(ctx context.Context, attempt int64) error {
	found, kept, err := s.record(ctx)
	switch {
	case err != nil:
		return err
	case kept.Attempt > attempt:
		return ErrSuperseded
	}
	_, err = s.Client.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.recordAt()), "=", found), clientv3.Compare(clientv3.CreateRevision(s.seal()), ">", 0),
	).Then(s.deleteData()).Commit()
	return err
}

// Erase deletes the seal and the record of a side, whose tenant is deleted.
func (s Side) Erase(ctx context.Context) error {
	_, err := s.Client.Txn(ctx).Then(clientv3.OpDelete(s.seal()), clientv3.OpDelete(s.recordAt())).Commit()
	return wrap(err, "delete the record of moves", s)
}

// accept records that a side has all of the data, as of a revision.
func (s Side) accept(ctx context.Context, attempt, revision int64) error {
	_, err := s.update(ctx, attempt, func(r *record) { r.Since, r.Complete = revision, true })
	return wrap(err, "accept the data", s)
}

func (s Side) putSeal() clientv3.Op    { return clientv3.OpPut(s.seal(), "") }
func (s Side) deleteData() clientv3.Op { return clientv3.OpDelete(s.prefix(), clientv3.WithPrefix()) }

// record reads the record of a side, and its revision.
func (s Side) record(ctx context.Context) (revision int64, kept record, err error) {
	found, err := s.Client.Get(ctx, s.recordAt())
	if err != nil {
		return 0, record{}, err
	}
	kept, err = decodeRecord(found.Kvs)
	return revisionOf(found.Kvs), kept, err
}

// update changes the record of a side together with other operations, unless a
// later attempt has changed it. It returns the revision of that.
func (s Side) update(ctx context.Context, attempt int64, change func(*record), with ...clientv3.Op) (revision int64, err error) {
	for range updates {
		found, kept, err := s.record(ctx)
		if err != nil {
			return 0, err
		}
		if kept.Attempt > attempt {
			return 0, ErrSuperseded
		}
		kept.Attempt = attempt
		change(&kept)
		encoded, err := json.Marshal(kept)
		if err != nil {
			return 0, err
		}
		response, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.recordAt()), "=", found)).
			Then(append(with, clientv3.OpPut(s.recordAt(), string(encoded)))...).Commit()
		if err != nil {
			return 0, err
		}
		if response.Succeeded {
			return response.Header.Revision, nil
		}
	}
	return 0, errBusy
}

func wrap(err error, what string, s Side) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of control plane %q: %w", what, s.Tenant, err)
}
