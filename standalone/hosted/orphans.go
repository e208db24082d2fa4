package hosted

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

// StoredNames returns the names of which a store has data: those of control
// planes, and of the templates of hosts. It reads a key of each.
func (h *Host) StoredNames(ctx context.Context) ([]string, error) {
	var names []string
	begin, end := keyspace.Root, clientv3.GetPrefixRangeEnd(keyspace.Root)
	for {
		found, err := h.stores.tenants.client.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(1), clientv3.WithKeysOnly())
		if err != nil {
			return nil, fmt.Errorf("find the control planes in etcd: %w", err)
		}
		if len(found.Kvs) == 0 {
			return names, nil
		}
		key := found.Kvs[0].Key
		name, _, ok := keyspace.Split(key)
		if !ok { // a key of no control plane
			begin = string(slices.Concat(key, []byte{0}))
			continue
		}
		names = append(names, name)
		begin = clientv3.GetPrefixRangeEnd(keyspace.Prefix(name) + "/")
	}
}

// StoredBytes returns the size of what a store has of a name.
func (h *Host) StoredBytes(ctx context.Context, name string) (int64, error) {
	sum, _, err := transfer.Side{Client: h.stores.tenants.client, Tenant: name}.Sum(ctx)
	return sum.Bytes, err
}

// DeleteOrphan deletes the data of a name that no control plane has. Nothing can
// start on the data from before the last check on.
func (h *Host) DeleteOrphan(ctx context.Context, name string, isOrphan func(context.Context) (bool, error)) error {
	own := h.stores.tenants
	side := transfer.Side{Client: own.client, Tenant: name}
	state, err := side.State(ctx)
	if err != nil {
		return err
	}
	attempt := state.Attempt + 1
	if !state.Sealed {
		if _, err := side.Seal(ctx, attempt); err != nil {
			return err
		}
	}
	orphan, err := isOrphan(ctx)
	switch {
	case err == nil && orphan:
	case state.Sealed:
		return err
	default:
		return errors.Join(err, side.Open(context.WithoutCancel(ctx), attempt))
	}
	if _, err := side.Clear(ctx, attempt); err != nil {
		return err
	}
	return own.wipe(ctx, name)
}
