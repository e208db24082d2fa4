package hosted

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

func storeOptions(dir string) Options {
	return Options{Dir: dir, StoreBytes: 64 << 20, UnsafeNoFsync: true, Log: logr.Discard()}
}

// openStores starts the etcds of a host, without the host.
func openStores(t *testing.T, opts Options) *stores {
	t.Helper()
	s, err := startStores(t.Context(), opts)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

func closeStores(t *testing.T, s *stores) {
	t.Helper()
	NewWithT(t).Expect(s.stop()).To(Succeed())
}

func putAll(t *testing.T, s *store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		_, err := s.client.Put(t.Context(), key, "value of "+key)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
}

// keysOf are all keys in an etcd.
func keysOf(t *testing.T, s *store) []string {
	t.Helper()
	response, err := s.client.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	keys := make([]string, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// TestWipe: the name of one control plane can be the beginning of another's.
func TestWipe(t *testing.T) {
	g := NewWithT(t)
	all := openStores(t, storeOptions(t.TempDir()))
	defer closeStores(t, all)
	others := []string{"/controlplanes", "/controlplanes/re/x", "/controlplanes/red-1/x", "/controlplanes/red0", "/registry/red/x"}
	putAll(t, all.tenants, others...)
	putAll(t, all.tenants, "/controlplanes/red/", "/controlplanes/red/pods/team/web", "/controlplanes/red/\xff")
	lease, err := all.tenants.client.Grant(t.Context(), 60)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = all.tenants.client.Put(t.Context(), "/controlplanes/red/events/1", "", clientv3.WithLease(lease.ID))
	g.Expect(err).NotTo(HaveOccurred())

	for range 2 {
		g.Expect(all.of("red").wipe(t.Context(), "red")).To(Succeed())
		g.Expect(keysOf(t, all.tenants)).To(ConsistOf(others))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	g.Expect(all.of("red-1").wipe(ended, "red-1")).To(MatchError(ContainSubstring(`control plane "red-1"`)))
	g.Expect(keysOf(t, all.tenants)).To(ConsistOf(others))
}

// TestAnInterruptedSplitIsFinished: the process can end between any two steps
// of dividing a store that is shared by the super cluster and its tenants.
func TestAnInterruptedSplitIsFinished(t *testing.T) {
	t.Parallel()
	before := []string{"/controlplanes/a/1", "/controlplanes/super/1", "/controlplanes/super-2/1", "/controlplanes/z/1"}
	for name, interrupt := range map[string]func(g Gomega, opts Options){
		"before it": func(Gomega, Options) {},
		"while it copied": func(g Gomega, opts Options) {
			g.Expect(os.MkdirAll(filepath.Join(opts.Dir, tenantsDir+".new", dataDir, "member"), 0o700)).To(Succeed())
		},
		"after it has copied": func(g Gomega, opts Options) {
			g.Expect(copyStore(filepath.Join(opts.Dir, storeDir), filepath.Join(opts.Dir, tenantsDir))).To(Succeed())
		},
		"after it has deleted from one": func(g Gomega, opts Options) {
			apart := filepath.Join(opts.Dir, tenantsDir)
			g.Expect(copyStore(filepath.Join(opts.Dir, storeDir), apart)).To(Succeed())
			tenants, err := startStore(t.Context(), apart, opts)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = tenants.client.Delete(t.Context(), "/controlplanes/super/", clientv3.WithPrefix())
			g.Expect(errors.Join(err, tenants.stop())).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			opts := storeOptions(t.TempDir())
			all := openStores(t, opts)
			putAll(t, all.tenants, before...)
			closeStores(t, all)
			interrupt(g, opts)

			opts.Super = "super"
			all = openStores(t, opts)
			defer closeStores(t, all)
			g.Expect(keysOf(t, all.of("super"))).To(ConsistOf("/controlplanes/super/1"))
			g.Expect(keysOf(t, all.of("a"))).To(ConsistOf("/controlplanes/a/1", "/controlplanes/super-2/1", "/controlplanes/z/1"))
			g.Expect(filepath.Glob(filepath.Join(opts.Dir, "*.new"))).To(BeEmpty())
			info, err := os.Stat(filepath.Join(opts.Dir, tenantsDir, dataDir))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)), "it holds the tenants' secrets")
		})
	}
}

// TestStoreThatCannotStart: the error names the directory, the data stays as it
// is, and nothing runs or locks the directory afterwards.
func TestStoreThatCannotStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage func(g Gomega, dir string)
		want   string
	}{
		"a file in the place of the directory": {func(g Gomega, dir string) {
			g.Expect(os.RemoveAll(dir)).To(Succeed())
			g.Expect(os.WriteFile(dir, nil, 0o600)).To(Succeed())
		}, "create the directory of etcd"},
		"a database that is none": {func(g Gomega, dir string) {
			g.Expect(os.WriteFile(databaseIn(dir), []byte(strings.Repeat("garbage", 10000)), 0o600)).To(Succeed())
		}, "check etcd's data"},
		"a database of a later version": {func(g Gomega, dir string) {
			g.Expect(setStorageVersion(dir, "3.99.0")).To(Succeed())
		}, "start etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			dir := filepath.Join(t.TempDir(), storeDir)
			opts := storeOptions(filepath.Dir(dir))
			closeStores(t, openStores(t, opts))
			test.damage(g, dir)
			for range 2 {
				_, err := startStores(t.Context(), opts)
				g.Expect(err).To(MatchError(And(ContainSubstring(test.want), ContainSubstring(dir))))
			}
		})
	}
}

// TestStoresStartTogether: if one of two etcds does not start, the other one is
// stopped, so that the next start finds it unused.
func TestStoresStartTogether(t *testing.T) {
	g := NewWithT(t)
	opts := storeOptions(t.TempDir())
	opts.Super = "super"
	closeStores(t, openStores(t, opts))
	tenants := filepath.Join(opts.Dir, tenantsDir)
	g.Expect(os.Rename(tenants, tenants+"-away")).To(Succeed())
	g.Expect(os.WriteFile(tenants, nil, 0o600)).To(Succeed())
	for range 2 {
		_, err := startStores(t.Context(), opts)
		g.Expect(err).To(MatchError(And(ContainSubstring(tenants), Not(ContainSubstring("another process")))))
	}
	g.Expect(os.Remove(tenants)).To(Succeed())
	g.Expect(os.Rename(tenants+"-away", tenants)).To(Succeed())
	closeStores(t, openStores(t, opts))
}

func TestAStartOfTheStoreCanBeCanceled(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30)) // its socket is elsewhere
	t.Setenv("TMPDIR", t.TempDir())
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("interrupted"))
	_, err := startStore(ended, dir, storeOptions(dir))
	g.Expect(err).To(MatchError(ContainSubstring("interrupted")))
	g.Expect(os.ReadDir(os.Getenv("TMPDIR"))).To(BeEmpty(), "the directory of the socket is left")
	s, err := startStore(t.Context(), dir, storeOptions(dir))
	g.Expect(err).NotTo(HaveOccurred())
	sockets, err := os.Stat(filepath.Dir(strings.TrimPrefix(s.endpoints(), "unix://")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sockets.Mode().Perm()).To(Equal(os.FileMode(0o700)), "any user could read the tenants' secrets")
	g.Expect(s.stop()).To(Succeed())
}

// TestStoresEndTogether: a host cannot continue with one of its etcds, or with a
// ledger that counts wrong.
func TestStoresEndTogether(t *testing.T) {
	untilEnd := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	fake := func(follow func(context.Context) error) *store {
		return &store{server: &embed.Etcd{}, followers: []func(context.Context) error{follow}, keeper: &quota.Keeper{}}
	}
	lagging := func(context.Context) error { return quota.ErrLagging }
	for name, test := range map[string]struct {
		super, tenants func(context.Context) error
		want           error
	}{
		"the super cluster's ledger lags": {lagging, untilEnd, quota.ErrLagging},
		"the tenants' ledger lags":        {untilEnd, lagging, quota.ErrLagging},
		"the host is stopped":             {untilEnd, untilEnd, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if test.want == nil {
				time.AfterFunc(10*time.Millisecond, end)
			}
			err := (&stores{super: fake(test.super), tenants: fake(test.tenants)}).run(ctx)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func databaseIn(dir string) string { return filepath.Join(dir, dataDir, "member", "snap", "db") }

// setStorageVersion makes a database look like one of another etcd.
func setStorageVersion(dir, version string) error {
	db, err := bbolt.Open(databaseIn(dir), 0o600, nil)
	if err != nil {
		return err
	}
	return errors.Join(db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("storageVersion"), []byte(version))
	}), db.Close())
}
