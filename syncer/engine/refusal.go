package engine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
)

// report tells the tenant why an object is not synced.
func (s *session) report(ctx context.Context, k *kinds.Kind, key client.ObjectKey, reason string, why error) error {
	obj, err := s.tenantObject(ctx, k, key)
	if err != nil || obj == nil {
		return err
	}
	reporter := pending.Reporter{Client: s.client, Reader: s.cluster.GetAPIReader(), Scheme: s.cluster.GetScheme()}
	return reporter.Report(ctx, obj, reason, s.identity().Text(why.Error(), key.Namespace))
}
