package quota

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rpctypes "go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

const mebi = 1024 * kibi

// keeperOf returns the keeper of an etcd whose file may have a few mebibytes.
func keeperOf(t *testing.T) *Keeper {
	t.Helper()
	const most = 4 * mebi
	dir, err := os.MkdirTemp("", "") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := embed.NewConfig()
	config.Dir, config.QuotaBackendBytes, config.ZapLoggerBuilder = dir, most, embed.NewZapLoggerBuilder(zap.NewNop())
	client := url.URL{Scheme: "unix", Path: filepath.Join(dir, "c")}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{client}, nil
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	<-server.Server.ReadyNotify()
	k := &Keeper{Ledger: NewLedger(root, 0), Endpoint: client.String(), Quota: most, MaxSuperseded: mebi, Log: logr.Discard()}
	if k.Client, err = clientv3.New(clientv3.Config{Endpoints: []string{k.Endpoint}, DialTimeout: time.Minute, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Client.Close() })
	return k
}

// fill writes records until etcd takes no more, and returns the error.
func fill(ctx context.Context, client *clientv3.Client, keys int) error {
	value := string(bytes.Repeat([]byte("x"), 256*kibi))
	for i := 0; ; i++ {
		if _, err := client.Put(ctx, fmt.Sprintf("%sa/%d", root, i%keys), value); err != nil {
			return err
		}
	}
}

// TestRecover: an etcd that has reached its quota rejects writes, also after records were deleted, until it is told that there is room.
func TestRecover(t *testing.T) {
	for name, test := range map[string]struct {
		// keys is how many records the writes go to.
		keys    int
		deleted bool
		fails   string
	}{
		"deleted records make room": {keys: 1000, deleted: true},
		"so do old revisions":       {keys: 2},
		"records that remain do not, and an admin is told what would": {keys: 1000, fails: "delete objects or tenants"},
	} {
		t.Run(name, func(t *testing.T) {
			k := keeperOf(t)
			if err := fill(t.Context(), k.Client, test.keys); !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Fatalf("got %v, want an etcd that has no space", err)
			}
			if test.deleted {
				if _, err := k.Client.Delete(t.Context(), root, clientv3.WithPrefix()); err != nil {
					t.Fatal(err)
				}
			}
			err := k.keep(t.Context())
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got error %v, want %q", err, test.fails)
			}
			_, err = k.Client.Put(t.Context(), root+"a/last", "small")
			if (err == nil) != (test.fails == "") {
				t.Errorf("a write afterwards: got error %v", err)
			}
		})
	}
}

// TestCompaction: what amounts to much is dropped one look later, so that a watch that lags a little does not lose its place.
func TestCompaction(t *testing.T) {
	k := keeperOf(t)
	oldest := put(t, k, "first")
	k.Ledger.superseded, k.Ledger.revision = 2*mebi, put(t, k, "second")
	look := func() error {
		t.Helper()
		if err := k.keep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := k.Client.Get(t.Context(), root+"a/x", clientv3.WithRev(oldest))
		return err
	}
	if err := look(); err != nil {
		t.Errorf("the first look has dropped a young revision: %v", err)
	}
	if err := look(); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("got %v, and the second look should have dropped the old revision", err)
	}
	k.Ledger.revision = put(t, k, "third")
	for range 2 {
		if err := look(); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
	}
	if _, err := k.Client.Get(t.Context(), root+"a/x", clientv3.WithRev(k.Ledger.revision-1)); err != nil {
		t.Errorf("what amounts to little was dropped: %v", err)
	}
}

// put writes a record and returns its revision.
func put(t *testing.T, k *Keeper, value string) int64 {
	t.Helper()
	response, err := k.Client.Put(t.Context(), root+"a/x", value)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}
