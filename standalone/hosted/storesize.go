package hosted

import (
	"context"

	"k8s.io/apiserver/pkg/storage/etcd3/metrics"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// reportSize makes the metric apiserver_storage_size_bytes of the process that
// of an etcd. Upstream sets it whenever it configures an apiserver, to the etcd
// of that one: that of a handler chain is none that it could connect to.
func (s *store) reportSize() {
	metrics.SetStorageMonitorGetter(func() ([]metrics.Monitor, error) { return []metrics.Monitor{sizeMonitor{s}}, nil })
}

// sizeMonitor reads the size of an etcd.
type sizeMonitor struct{ store *store }

// Monitor implements metrics.Monitor.
func (m sizeMonitor) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	if m.store.server == nil {
		status, err := quota.StatusOf(ctx, m.store.client, m.store.clients.Endpoints)
		if err != nil {
			return metrics.StorageMetrics{}, err
		}
		return metrics.StorageMetrics{Size: status.DbSize}, nil
	}
	return metrics.StorageMetrics{Size: m.store.server.Server.Backend().Size()}, nil
}

// Close implements metrics.Monitor.
func (sizeMonitor) Close() error { return nil }
