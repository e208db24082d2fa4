package quota

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
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

func TestRejection(t *testing.T) {
	reason, text, ok := Rejection("rpc error: code = ResourceExhausted desc = " + rejectedBy + "pace: later: please")
	if !ok || reason != ReasonPace || text != "later: please" {
		t.Errorf("got %q, %q, %t", reason, text, ok)
	}
	if _, _, ok := Rejection("etcdserver: mvcc: database space exceeded"); ok {
		t.Error("etcd's own error is taken for a guard's")
	}
}
