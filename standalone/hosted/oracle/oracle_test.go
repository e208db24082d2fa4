package oracle_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/oracle"
)

// TestTheOracleFindsEachCrossing: an oracle that finds nothing proves nothing.
func TestTheOracleFindsEachCrossing(t *testing.T) {
	_, all := etcdtest.Start(t)
	const own, foreign = "/controlplanes/red/pods/a", "/controlplanes/red1/pods/a"
	for name, test := range map[string]struct {
		access func(context.Context, *clientv3.Client)
		want   string
	}{
		"its own key": {func(ctx context.Context, c *clientv3.Client) { _, _ = c.Do(ctx, clientv3.OpGet(own)) }, ""},
		"its own range": {func(ctx context.Context, c *clientv3.Client) {
			_, _ = c.Do(ctx, clientv3.OpGet("/controlplanes/red/", clientv3.WithPrefix()))
		}, ""},
		"another's key":   {func(ctx context.Context, c *clientv3.Client) { _, _ = c.Do(ctx, clientv3.OpGet(foreign)) }, foreign},
		"another's write": {func(ctx context.Context, c *clientv3.Client) { _, _ = c.Do(ctx, clientv3.OpPut(foreign, "x")) }, foreign},
		"a range of both": {func(ctx context.Context, c *clientv3.Client) {
			_, _ = c.Do(ctx, clientv3.OpGet("/controlplanes/red", clientv3.WithPrefix()))
		}, "/controlplanes/ree"},
		"a range without end": {func(ctx context.Context, c *clientv3.Client) {
			_, _ = c.Do(ctx, clientv3.OpGet(own, clientv3.WithRange("/controlplanes/rf")))
		}, "/controlplanes/rf"},
		"a comparison": {func(ctx context.Context, c *clientv3.Client) {
			_, _ = c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(foreign), "=", 0)).Commit()
		}, foreign},
		"a transaction": {func(ctx context.Context, c *clientv3.Client) {
			_, _ = c.Txn(ctx).Then(clientv3.OpGet(own), clientv3.OpGet(foreign)).Commit()
		}, foreign},
		"its other branch": {func(ctx context.Context, c *clientv3.Client) {
			_, _ = c.Txn(ctx).Then(clientv3.OpGet(own)).Else(clientv3.OpGet(foreign)).Commit()
		}, foreign},
		"a nested transaction": {func(ctx context.Context, c *clientv3.Client) {
			_, _ = c.Txn(ctx).Then(clientv3.OpTxn(nil, nil, nil)).Commit()
		}, "transaction in a transaction"},
		"a watch": {func(ctx context.Context, c *clientv3.Client) { c.Watch(ctx, foreign) }, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			var found strings.Builder
			o := oracle.New(func(violation string) { found.WriteString(violation) })
			client := *all
			o.Observe(&client)
			if _, err := client.Do(t.Context(), clientv3.OpGet(foreign)); err != nil { // of no request
				t.Fatal(err)
			}
			serve(t, o.Attribute("red", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { test.access(r.Context(), &client) })))
			if o.Attributed() == 0 || o.Nameless() != 1 {
				t.Errorf("%d accesses of requests, %d others", o.Attributed(), o.Nameless())
			}
			if (o.Err() == nil) != (test.want == "") || !strings.Contains(found.String(), test.want) {
				t.Errorf("got %v, %q", o.Err(), found.String())
			}
		})
	}
}

// TestARequestThatChangesItsTenant, and an oracle that has seen nothing.
func TestARequestThatChangesItsTenant(t *testing.T) {
	o := oracle.New(func(string) {})
	if o.Err() == nil {
		t.Error("an oracle without requests is no proof")
	}
	serve(t, o.Attribute("red", o.Attribute("blue", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))))
	if err := o.Err(); err == nil || !strings.Contains(err.Error(), "another tenant") {
		t.Errorf("got %v", err)
	}
}

func serve(t *testing.T, handler http.Handler) {
	t.Helper()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
}
