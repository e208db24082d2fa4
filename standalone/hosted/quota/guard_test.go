package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// startGuarded starts an etcd behind a guard whose ledger follows it.
func startGuarded(t *testing.T, limits Limits) (*Ledger, *embed.Etcd, *clientv3.Client) {
	t.Helper()
	ledger := ledgerWith(limits)
	server, client, _ := startEtcd(t, 0, Guard(ledger))
	follow(t, ledger, server)
	return ledger, server, client
}

// follow has a ledger follow an etcd until the end of the test.
func follow(t *testing.T, ledger *Ledger, server *embed.Etcd) {
	t.Helper()
	run, err := Follow(ledger, server.Server.KV(), server.Server.Backend())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("the ledger stopped following: %v", err)
		}
	})
}

// stored is what etcd itself has of a control plane.
func stored(t *testing.T, client *clientv3.Client, name string) (usage Usage, revision int64) {
	t.Helper()
	response, err := client.Get(t.Context(), root+name+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range response.Kvs {
		usage.Objects++
		usage.Bytes += int64(len(kv.Key) + len(kv.Value))
	}
	return usage, response.Header.Revision
}

// agrees waits until the ledger knows all revisions, and compares it with etcd.
func agrees(t *testing.T, ledger *Ledger, client *clientv3.Client, planes ...string) {
	t.Helper()
	for _, name := range planes {
		want, revision := stored(t, client, name)
		eventually(t, "the ledger has caught up", func() bool {
			_, reached := ledger.Superseded()
			return reached >= revision || ledger.Usage(name) == want
		})
		if got := ledger.Usage(name); got != want {
			t.Errorf("the ledger has %+v of %s, and etcd %+v", got, name, want)
		}
	}
}

// changeAtRandom makes one random change in etcd.
func changeAtRandom(ctx context.Context, random *rand.Rand, client *clientv3.Client) error {
	key := fmt.Sprintf("%s%c/%d", root, 'a'+rune(random.IntN(2)), random.IntN(20))
	value := strings.Repeat("v", random.IntN(2000))
	switch random.IntN(7) {
	case 0, 1, 2:
		_, err := client.Put(ctx, key, value)
		return err
	case 3: // as an apiserver creates and updates
		_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
		return err
	case 4:
		_, err := client.Delete(ctx, key)
		return err
	case 5:
		_, err := client.Delete(ctx, key, clientv3.WithPrefix())
		return err
	default:
		lease, err := client.Grant(ctx, 60)
		if err != nil {
			return err
		}
		if _, err := client.Put(ctx, key, value, clientv3.WithLease(lease.ID)); err != nil {
			return err
		}
		_, err = client.Revoke(ctx, lease.ID)
		return err
	}
}

// TestLedgerAgreesWithEtcd: after any sequence of writes, deletions, expired
// leases and compactions, and after a restart.
func TestLedgerAgreesWithEtcd(t *testing.T) {
	t.Parallel()
	ledger, server, client := startGuarded(t, Limits{})
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 400 {
		if err := changeAtRandom(t.Context(), random, client); err != nil {
			t.Fatal(err)
		}
		if i%100 != 99 {
			continue
		}
		agrees(t, ledger, client, "a", "b")
		_, revision := ledger.Superseded()
		if _, err := client.Compact(t.Context(), revision-int64(random.IntN(20))); err != nil {
			t.Fatal(err)
		}
		restarted := NewLedger(root, 0)
		follow(t, restarted, server)
		agrees(t, restarted, client, "a", "b")
	}
	if _, err := client.Put(t.Context(), "/elsewhere/a/1", "no control plane's"); err != nil {
		t.Fatal(err)
	}
	agrees(t, ledger, client, "a", "b")
	if got := ledger.Usage("elsewhere"); got != (Usage{}) {
		t.Errorf("%+v of another prefix are counted", got)
	}
}

func TestReplayReportsADamagedRecord(t *testing.T) {
	_, server, _ := startGuarded(t, Limits{})
	damage(server, []byte{0xff})
	_, err := Follow(NewLedger(root, 0), server.Server.KV(), server.Server.Backend())
	if err == nil || !strings.Contains(err.Error(), "read the record of revision") {
		t.Errorf("got %v, want an error that names the revision", err)
	}
}

// TestGuard sends requests to an etcd in which control plane a may store two
// records of a kibibyte and has one.
func TestGuard(t *testing.T) {
	ledger, _, client := startGuarded(t, Limits{Bytes: 2 * kibi, Objects: 2})
	first := root + "a/1"
	sized := func(key string, size int) clientv3.Op { return clientv3.OpPut(key, strings.Repeat("x", size-len(key))) }
	absent := clientv3.Compare(clientv3.ModRevision(root+"a/2"), "=", 0)
	within, beyond := sized(root+"a/2", kibi), sized(root+"a/2", kibi+1)
	for name, test := range map[string]struct {
		op       clientv3.Op
		purposes []Purpose
		rejected string
	}{
		"a write within the limit":     {op: within},
		"a write beyond it":            {op: beyond, rejected: "this write needs 1025 more"},
		"a creation beyond it":         {op: clientv3.OpTxn([]clientv3.Cmp{absent}, []clientv3.Op{beyond}, nil), rejected: "limited to 2Ki"},
		"the larger branch counts":     {op: clientv3.OpTxn([]clientv3.Cmp{absent}, []clientv3.Op{within}, []clientv3.Op{beyond}), rejected: "limited to 2Ki"},
		"a transaction in another":     {op: clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{beyond}, nil)}, nil), rejected: "limited to 2Ki"},
		"two writes in one":            {op: clientv3.OpTxn(nil, []clientv3.Op{sized(root+"a/2", 100), sized(root+"a/3", 100)}, nil), rejected: "limited to 2 objects"},
		"a read":                       {op: clientv3.OpGet(first)},
		"a deletion of all":            {op: clientv3.OpDelete(root+"a/", clientv3.WithPrefix())},
		"another control plane":        {op: sized(root+"b/1", 10*kibi)},
		"a prefix of its name":         {op: sized(root+"aa/1", 10*kibi)},
		"no control plane":             {op: sized("/registry/a/1", 10*kibi)},
		"an update in the reserve":     {op: sized(first, 2*kibi+kibi/4), purposes: []Purpose{Upkeep}},
		"an update beyond the reserve": {op: sized(first, 2*kibi+kibi/4+1), purposes: []Purpose{Upkeep}, rejected: "limited to 2Ki"},
		"a vital write":                {op: beyond, purposes: []Purpose{Vital}},
		"a purpose that does not exist": {
			op: beyond, purposes: []Purpose{"important"}, rejected: "limited to 2Ki",
		},
		"two purposes": {op: beyond, purposes: []Purpose{Vital, Vital}, rejected: "limited to 2Ki"},
	} {
		t.Run(name, func(t *testing.T) {
			reset(t, ledger, client, sized(first, kibi))
			var sent []string
			for _, purpose := range test.purposes {
				sent = append(sent, purposeHeader, string(purpose))
			}
			_, err := client.Do(metadata.AppendToOutgoingContext(t.Context(), sent...), test.op)
			if test.rejected == "" {
				if err != nil {
					t.Errorf("rejected: %v", err)
				}
				return
			}
			reason, text, ok := Rejection(fmt.Sprint(err))
			if !ok || reason != ReasonStorage || !strings.Contains(text, test.rejected) || status.Code(err) != codes.ResourceExhausted {
				t.Errorf("got %v, want a rejection with %q", err, test.rejected)
			}
			if got, _ := stored(t, client, "a"); got != (Usage{Bytes: kibi, Objects: 1}) {
				t.Errorf("%+v are stored after a rejection", got)
			}
		})
	}
}

// reset leaves one record in etcd.
func reset(t *testing.T, ledger *Ledger, client *clientv3.Client, record clientv3.Op) {
	t.Helper()
	for _, op := range []clientv3.Op{clientv3.OpDelete(root, clientv3.WithPrefix()), record} {
		if _, err := client.Do(WithPurpose(t.Context(), Vital), op); err != nil {
			t.Fatal(err)
		}
	}
	agrees(t, ledger, client, "a")
}

// TestConcurrentWrites: writers that race for the last room never store more
// than the limit, and room that is left is usable.
func TestConcurrentWrites(t *testing.T) {
	t.Parallel()
	const most = 20
	ledger, _, client := startGuarded(t, Limits{Bytes: most * kibi})
	write := func(key string) error {
		_, err := client.Put(t.Context(), key, strings.Repeat("x", kibi-len(key)))
		return err
	}
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for j := range most {
				_ = write(fmt.Sprintf("%sa/%d-%02d", root, i, j))
			}
		})
	}
	writers.Wait()
	agrees(t, ledger, client, "a")
	got, _ := stored(t, client, "a")
	if got.Objects == 0 || got.Objects > most {
		t.Fatalf("%d objects are stored, want 1 to %d", got.Objects, most)
	}
	for i := got.Objects; i < most; i++ {
		if err := write(fmt.Sprintf("%sa/z-%02d", root, i)); err != nil {
			t.Errorf("rejected with %d of %d stored: %v", i, most, err)
		}
	}
	if err := write(root + "a/too-much"); err == nil {
		t.Error("a write beyond the limit succeeds")
	}
}

// TestGuardSettles: a write that was admitted takes up room exactly as long as
// it may be stored.
func TestGuardSettles(t *testing.T) {
	const revision = 7
	header := &pb.ResponseHeader{Revision: revision}
	for name, test := range map[string]struct {
		response any
		err      error
		pending  bool
	}{
		"it fails":                       {err: errors.New("no leader")},
		"its condition does not hold":    {response: &pb.TxnResponse{Header: header}},
		"it is stored":                   {response: &pb.PutResponse{Header: header}, pending: true},
		"it is stored by a transaction":  {response: &pb.TxnResponse{Header: header, Succeeded: true}, pending: true},
		"it has no header":               {response: &pb.PutResponse{}},
		"its answer is of no known kind": {response: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			ledger := ledgerWith(Limits{Objects: 1})
			guard := Guard(ledger)
			send := func(response any, err error) (any, error) {
				request := &pb.PutRequest{Key: []byte(root + "a/1")}
				return guard(t.Context(), request, nil, func(context.Context, any) (any, error) { return response, err })
			}
			if response, err := send(test.response, test.err); response != test.response || !errors.Is(err, test.err) {
				t.Errorf("the guard returns %v and %v", response, err)
			}
			if _, err := send(&pb.PutResponse{}, nil); (err != nil) != test.pending {
				t.Errorf("another write: %v", err)
			}
			ledger.reached(revision)
			if _, err := send(&pb.PutResponse{}, nil); err != nil {
				t.Errorf("rejected after the ledger has seen that nothing is stored: %v", err)
			}
		})
	}
}

func TestWritesOf(t *testing.T) {
	put := func(key string, size int) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: make([]byte, size)}}}
	}
	txn := func(success, failure []*pb.RequestOp) *pb.TxnRequest {
		return &pb.TxnRequest{Success: success, Failure: failure}
	}
	nested := &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn([]*pb.RequestOp{put("n", 9)}, nil)}}
	remove := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("d")}}}
	for name, test := range map[string]struct {
		request any
		want    string
	}{
		"nothing":                 {nil, ""},
		"a put":                   {&pb.PutRequest{Key: []byte("k"), Value: []byte("v")}, "k=2"},
		"an empty put":            {&pb.PutRequest{}, "=0"},
		"a read":                  {&pb.RangeRequest{Key: []byte("k")}, ""},
		"a deletion":              {&pb.DeleteRangeRequest{Key: []byte("k")}, ""},
		"a compaction":            {&pb.CompactionRequest{}, ""},
		"an empty transaction":    {txn(nil, nil), ""},
		"operations without kind": {txn([]*pb.RequestOp{{}, nil}, nil), ""},
		"all of a branch":         {txn([]*pb.RequestOp{put("a", 1), remove, put("b", 2)}, nil), "a=2 b=3"},
		"the larger branch":       {txn([]*pb.RequestOp{put("a", 1)}, []*pb.RequestOp{put("b", 9)}), "b=10"},
		"the first of equals":     {txn([]*pb.RequestOp{put("a", 1)}, []*pb.RequestOp{put("b", 1)}), "a=2"},
		"a nested transaction":    {txn([]*pb.RequestOp{nested, put("a", 1)}, nil), "n=10 a=2"},
		"a megabyte":              {&pb.PutRequest{Value: make([]byte, mebi)}, fmt.Sprintf("=%d", mebi)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range writesOf(test.request) {
				got = append(got, fmt.Sprintf("%s=%d", w.key, w.size))
			}
			if joined := strings.Join(got, " "); joined != test.want {
				t.Errorf("got %q, want %q", joined, test.want)
			}
		})
	}
}

func TestPurposeOfARequest(t *testing.T) {
	if ctx := WithPurpose(t.Context(), Ordinary); ctx != t.Context() {
		t.Error("an ordinary write has metadata")
	}
	sent, _ := metadata.FromOutgoingContext(WithPurpose(t.Context(), Vital))
	for name, test := range map[string]struct {
		received metadata.MD
		want     Purpose
	}{
		"none":    {nil, Ordinary},
		"as sent": {sent, Vital},
		"unknown": {metadata.Pairs(purposeHeader, "any"), Ordinary},
		"twice":   {metadata.Join(sent, sent), Ordinary},
		"another": {metadata.Pairs("vc-other", string(Vital)), Ordinary},
	} {
		if got := purposeOf(test.received); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
