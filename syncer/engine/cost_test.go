package engine

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// sendTo sends a request to a side, as the syncer's clients do.
func sendTo(ctx context.Context, t *testing.T, side string) {
	t.Helper()
	counter, err := requests.NewCounter(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	transport := counter.Wrap(side)(requests.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	answer, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/namespaces/shop/pods", nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

// TestCharge has each look at an object of blue lead to a request, and those at
// objects of red to none.
func TestCharge(t *testing.T) {
	e := &session.SuperCluster{Queue: fairqueue.New(queue.Request.Lane, fairqueue.Options{})}
	defer e.Queue.ShutDown()
	for i := range 20 {
		for _, tenant := range []multicluster.ClusterName{"blue", "red"} {
			e.Enqueue(queue.Request{Cluster: tenant, Kind: "Pod", Key: client.ObjectKey{Name: strings.Repeat("x", i+1)}}, queue.PriorityNormal)
		}
	}
	var order strings.Builder
	for range 2 * (1 + 1 + requestCost) {
		r, _ := e.Queue.Get()
		ctx, sent := requests.Tallied(t.Context())
		if r.Cluster == "blue" {
			sendTo(ctx, t, requests.Tenant)
		}
		charge(e.Queue, r, sent)
		e.Queue.Done(r)
		order.WriteString(string(r.Cluster)[:1])
	}
	if want := strings.Repeat("b"+strings.Repeat("r", 1+requestCost), 2); order.String() != want {
		t.Errorf("served %s, want %s", order.String(), want)
	}
}
