package hosted

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

const (
	// moveRequestTimeout limits each request of a move to an etcd, so that one
	// that hangs delays a control plane for a moment only.
	moveRequestTimeout = 10 * time.Second
	// copyFactor estimates the size of a copy in an etcd by that of its records.
	copyFactor = 2
	// fillPercent of an etcd's quota is how large its file may become by a move.
	fillPercent = 95
)

// NoRoomError reports a store that cannot take the data of a control plane.
type NoRoomError struct{ text string }

// Error implements error.
func (e *NoRoomError) Error() string { return e.text }

// PrepareMove checks that the store of another host takes the data of a control
// plane, which may run meanwhile, and raises the revision of that store: it takes
// minutes if the store is far behind.
func (h *Host) PrepareMove(ctx context.Context, name string, to *Host) error {
	from, into, end, err := h.sides(name, to)
	if err != nil {
		return err
	}
	defer end()
	if err := into.CheckUnused(ctx); err != nil {
		return err
	}
	gap, err := transfer.Behind(ctx, from.Client, into.Client)
	if err != nil {
		return err
	}
	data, _, err := from.Sum(ctx)
	if err != nil {
		return err
	}
	room, err := to.stores.of(name).room(ctx)
	if err != nil {
		return err
	}
	if bytes := data.Bytes*copyFactor + gap*transfer.RaiseBytes; bytes > room {
		return &NoRoomError{fmt.Sprintf("it takes %d MiB more, and the move needs %d MiB", room>>20, bytes>>20+1)}
	}
	return transfer.CatchUp(ctx, from.Client, into.Client)
}

// Move copies the data of a control plane that does not run to the store of
// another host. Writes to the data fail from then on, whichever host sends them,
// and so do those to the copy until Reopen. The number of the attempt is larger
// than those of earlier ones.
func (h *Host) Move(ctx context.Context, name string, to *Host, attempt int64) (transfer.Sum, error) {
	from, into, end, err := h.sides(name, to)
	if err != nil {
		return transfer.Sum{}, err
	}
	defer end()
	room, err := to.stores.of(name).room(ctx)
	if err != nil {
		return transfer.Sum{}, err
	}
	to.stores.of(name).ledger.Forget(name)
	copied, err := transfer.Copy(ctx, from, into, attempt, room/copyFactor)
	if errors.Is(err, transfer.ErrNoRoom) {
		err = &NoRoomError{fmt.Sprintf("it takes %d MiB more, and the data has grown beyond that", room>>20)}
	}
	return copied, err
}

// DataState returns what a store has of a control plane, and the last attempt to
// move it.
func (h *Host) DataState(ctx context.Context, name string) (transfer.State, error) {
	ctx, cancel := context.WithTimeout(ctx, moveRequestTimeout)
	defer cancel()
	return h.stores.of(name).side(name).State(ctx)
}

// Reopen allows writes to the data of a control plane, after it was moved to this
// host, or was not moved after all.
func (h *Host) Reopen(ctx context.Context, name string, attempt int64) error {
	ctx, cancel := context.WithTimeout(ctx, moveRequestTimeout)
	defer cancel()
	return h.stores.of(name).side(name).Open(ctx, attempt)
}

// Clear deletes data of a control plane that is in another store, and rejects
// writes to it.
func (h *Host) Clear(ctx context.Context, name string, attempt int64) error {
	ctx, cancel := context.WithTimeout(ctx, moveRequestTimeout)
	defer cancel()
	own := h.stores.of(name)
	if _, err := own.side(name).Clear(ctx, attempt); err != nil {
		return err
	}
	own.ledger.Forget(name)
	_, err := own.client.Delete(ctx, attemptsRoot+name)
	return wrapf(err, "delete the count of failed starts of control plane %q from etcd", name)
}

// DeleteData deletes what a store has of a control plane that is deleted and whose
// data is in another one. It does not run here.
func (h *Host) DeleteData(ctx context.Context, name string) error {
	if err := validateName(name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, moveRequestTimeout)
	defer cancel()
	return h.stores.of(name).wipe(ctx, name)
}

// sides returns the data of a control plane here and in another host. The caller
// calls end.
func (h *Host) sides(name string, to *Host) (from, into transfer.Side, end func(), err error) {
	if err := validateName(name); err != nil {
		return from, into, nil, err
	}
	here, err := h.stores.of(name).connectBounded()
	if err != nil {
		return from, into, nil, err
	}
	there, err := to.stores.of(name).connectBounded()
	if err != nil {
		_ = here.Close()
		return from, into, nil, err
	}
	return transfer.Side{Client: here, Tenant: name}, transfer.Side{Client: there, Tenant: name}, func() {
		_ = here.Close()
		_ = there.Close()
	}, nil
}

func (s *store) side(name string) transfer.Side { return transfer.Side{Client: s.client, Tenant: name} }

// connectBounded returns a new client whose requests take a while at most.
func (s *store) connectBounded() (*clientv3.Client, error) {
	client, err := s.connect()
	if err != nil {
		return nil, err
	}
	transfer.Bound(client, moveRequestTimeout)
	return client, nil
}

// room returns how many bytes more an etcd takes.
func (s *store) room(ctx context.Context) (int64, error) {
	status, err := quota.StatusOf(ctx, s.client, s.clients.Endpoints)
	if err != nil {
		return 0, err
	}
	return roomOf(status, s.keeper.Quota)
}

// roomOf returns how many bytes more an etcd with a quota takes: others grow in it,
// too, and a file of its full size blocks writes.
func roomOf(status *clientv3.StatusResponse, limit int64) (int64, error) {
	most := limit / percent * capacityPercent
	switch {
	case len(status.Errors) > 0:
		return 0, &NoRoomError{"etcd reports: " + strings.Join(status.Errors, ", ")}
	case status.DbSizeInUse >= most:
		return 0, &NoRoomError{fmt.Sprintf("it has %d MiB, and takes %d %% of %d MiB", status.DbSizeInUse>>20, capacityPercent, limit>>20)}
	case status.DbSize > limit/percent*fillPercent:
		return 0, &NoRoomError{fmt.Sprintf("its file has %d MiB of %d MiB: defragment the etcd", status.DbSize>>20, limit>>20)}
	}
	return most - status.DbSizeInUse, nil
}
