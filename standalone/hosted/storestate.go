package hosted

import (
	"context"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// StoreState is the state of the etcd of a host.
type StoreState struct {
	// Bytes is the size of the data in use.
	Bytes int64
	// Problems are those that etcd reports, such as an alarm or no leader.
	Problems []string
}

// CheckStore asks the etcd of a host for its state.
func (h *Host) CheckStore(ctx context.Context) (StoreState, error) {
	of := h.stores.tenants
	status, err := quota.StatusOf(ctx, of.client, of.clients.Endpoints)
	if err != nil {
		return StoreState{}, err
	}
	return StoreState{Bytes: status.DbSizeInUse, Problems: status.Errors}, nil
}
