package quota

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

func TestParse(t *testing.T) {
	kv := mvccpb.KeyValue{Key: []byte("/k"), Value: []byte("value"), CreateRevision: 5, ModRevision: 300, Version: 2, Lease: 9}
	record, err := kv.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	key, size, err := parse(record)
	if err != nil || string(key) != "/k" || size != len("/k")+len("value") {
		t.Errorf("got %q of %d bytes: %v", key, size, err)
	}
	if _, _, err := parse(record[:len(record)-1]); err == nil {
		t.Error("a record that is cut off is no error")
	}
}

// damage stores something that is no record.
func damage(server *embed.Etcd, record []byte) {
	tx := server.Server.Backend().BatchTx()
	tx.Lock()
	defer tx.Unlock()
	key := mvcc.NewRevBytes()
	tx.UnsafePut(schema.Key, mvcc.RevToBytes(mvcc.Revision{Main: 1 << 40}, key), record)
}

// TestFollowing: a ledger that misses revisions would count wrong for good, so
// that it stops; the host then ends and starts with a new one.
func TestFollowing(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	closed := make(chan mvcc.WatchResponse)
	close(closed)
	for name, test := range map[string]struct {
		ctx       context.Context
		responses chan mvcc.WatchResponse
		want      error
	}{
		"its context ends":       {canceled, make(chan mvcc.WatchResponse), nil},
		"the stream ends":        {t.Context(), closed, ErrLagging},
		"revisions were skipped": {t.Context(), responses(mvcc.WatchResponse{CompactRevision: 9}), ErrLagging},
	} {
		t.Run(name, func(t *testing.T) {
			if err := ledgerWith(Limits{}).follow(test.ctx, test.responses); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	ledger := ledgerWith(Limits{})
	kv := &mvccpb.KeyValue{Key: []byte(root + "a/1"), Value: make([]byte, 5), ModRevision: 3}
	_ = ledger.follow(t.Context(), responses(mvcc.WatchResponse{}, mvcc.WatchResponse{Events: []mvccpb.Event{{Kv: kv}}}))
	if _, revision := ledger.Superseded(); revision != kv.ModRevision || ledger.Usage("a").Objects != 1 {
		t.Errorf("revision %d is reached with %+v, want %d with one object", revision, ledger.Usage("a"), kv.ModRevision)
	}
}

// responses is a stream that ends after some responses.
func responses(all ...mvcc.WatchResponse) chan mvcc.WatchResponse {
	stream := make(chan mvcc.WatchResponse, len(all))
	defer close(stream)
	for _, each := range all {
		stream <- each
	}
	return stream
}

func TestRejection(t *testing.T) {
	reason, text, ok := Rejection("rpc error: code = ResourceExhausted desc = " + rejectedBy + "pace: later: please")
	if !ok || reason != ReasonPace || text != "later: please" {
		t.Errorf("got %q, %q, %t", reason, text, ok)
	}
	if _, _, ok := Rejection("etcdserver: mvcc: database space exceeded"); ok {
		t.Error("etcd's own error is taken for a guard's")
	}
}
