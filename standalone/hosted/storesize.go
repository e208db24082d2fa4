package hosted

import (
	"context"

	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
)

// reportSize makes the metric apiserver_storage_size_bytes of the process that
// of an etcd. Upstream sets it whenever it configures an apiserver, to the etcd
// of that one: that of a handler chain is none that it could connect to.
func (s *store) reportSize() {
	metrics.SetStorageMonitorGetter(func() ([]metrics.Monitor, error) { return []metrics.Monitor{sizeMonitor{s}}, nil })
}

// sizeMonitor reads the size of an etcd in this process.
type sizeMonitor struct{ store *store }

// Monitor implements metrics.Monitor.
func (m sizeMonitor) Monitor(context.Context) (metrics.StorageMetrics, error) {
	return metrics.StorageMetrics{Size: m.store.server.Server.Backend().Size()}, nil
}

// Close implements metrics.Monitor.
func (sizeMonitor) Close() error { return nil }
