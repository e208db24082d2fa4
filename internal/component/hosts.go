package component

import (
	"context"

	clientmetrics "k8s.io/client-go/tools/metrics"
)

// HideHosts keeps the hosts of requests out of the metrics of client-go, for the
// whole process, before a client of it is used. The host is that of a tenant's
// apiserver, or of a webhook that a tenant chose, and its series would stay until
// the process ends.
func HideHosts() { clientmetrics.RequestResult = withoutHosts{clientmetrics.RequestResult} }

type withoutHosts struct{ results clientmetrics.ResultMetric }

// Increment implements clientmetrics.ResultMetric.
func (w withoutHosts) Increment(ctx context.Context, code, method, _ string) {
	w.results.Increment(ctx, code, method, "")
}
