package keyspace_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

func TestTenant(t *testing.T) {
	none := t.Context()
	red := keyspace.NewContext(none, "red")
	for name, test := range map[string]struct {
		ctx  context.Context
		want string
		fail string
	}{
		"none":                          {ctx: none, fail: "no tenant"},
		"one":                           {ctx: red, want: "red"},
		"one, again":                    {ctx: keyspace.NewContext(red, "red"), want: "red"},
		"derived":                       {ctx: context.WithoutCancel(red), want: "red"},
		"another":                       {ctx: keyspace.NewContext(red, "blue"), fail: `tenant "red" cannot become that of tenant "blue"`},
		"another and back":              {ctx: keyspace.NewContext(keyspace.NewContext(red, "blue"), "red"), fail: "cannot become"},
		"no name":                       {ctx: keyspace.NewContext(none, ""), fail: "cannot name"},
		"a name below another tenant's": {ctx: keyspace.NewContext(none, "red/pods"), fail: "cannot name"},
		"all":                           {ctx: keyspace.NewContext(none, "/"), fail: "cannot name"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tenant, err := keyspace.Tenant(test.ctx)
			if test.fail != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fail)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tenant).To(Equal(test.want))
		})
	}
}

func TestSplit(t *testing.T) {
	for key, want := range map[string][2]string{
		"/controlplanes/red/pods/team/web": {"red", "/pods/team/web"},
		"/controlplanes/red/":              {"red", "/"},
		"/controlplanes/red":               {},
		"/controlplanes//pods":             {},
		"/controlplane/red/pods":           {},
		"":                                 {},
	} {
		t.Run(key, func(t *testing.T) {
			g := NewWithT(t)
			tenant, rest, ok := keyspace.Split([]byte(key))
			g.Expect([2]string{tenant, string(rest)}).To(Equal(want))
			g.Expect(ok).To(Equal(want != [2]string{}))
		})
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("red", "/pods/team/web")
	f.Add("red/pods", "/x")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, tenant, rest string) {
		if _, err := keyspace.Tenant(keyspace.NewContext(t.Context(), tenant)); err != nil || !strings.HasPrefix(rest, "/") {
			return
		}
		gotTenant, gotRest, ok := keyspace.Split([]byte(keyspace.Prefix(tenant) + rest))
		if !ok || gotTenant != tenant || string(gotRest) != rest {
			t.Errorf("split the key of %q at %q: got %q, %q, %v", tenant, rest, gotTenant, gotRest, ok)
		}
	})
}

// TestConfine calls each operation for two tenants with equal keys, one of
// whose names begins the other's.
func TestConfine(t *testing.T) {
	g := NewWithT(t)
	all, confined := clients(t)
	red, red1 := keyspace.NewContext(t.Context(), "red"), keyspace.NewContext(t.Context(), "red-1")
	watched := confined.Watch(red, "/pods/", clientv3.WithPrefix(), clientv3.WithPrevKV())
	for _, ctx := range []context.Context{red1, red} {
		tenant, err := keyspace.Tenant(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		put, err := confined.OptimisticPut(ctx, "/pods/web", []byte("of "+tenant), 0, kubernetes.PutOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(put.Succeeded).To(BeTrue(), "the key of %s is its own", tenant)
	}
	_, err := confined.Put(red, "/pods/z", "last")
	g.Expect(err).NotTo(HaveOccurred())

	got, err := confined.Kubernetes.Get(red, "/pods/web", kubernetes.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got.KV.Key)).To(Equal("/pods/web"))
	g.Expect(string(got.KV.Value)).To(Equal("of red"))

	list, err := confined.List(red, "/pods/", kubernetes.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Count).To(BeEquivalentTo(2))
	for _, want := range []string{"of red", "last"} {
		var response clientv3.WatchResponse
		g.Eventually(watched, "20s").Should(Receive(&response))
		g.Expect(response.Events).To(HaveLen(1))
		g.Expect(string(response.Events[0].Kv.Value)).To(Equal(want))
		g.Expect(string(response.Events[0].Kv.Key)).To(HavePrefix("/pods/"))
	}

	deleted, err := confined.Delete(red, "/", clientv3.WithPrefix())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(deleted.Deleted).To(BeEquivalentTo(2))
	left, err := all.Get(t.Context(), "/", clientv3.WithPrefix())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left.Kvs).To(HaveLen(1))
	g.Expect(string(left.Kvs[0].Key)).To(Equal("/controlplanes/red-1/pods/web"))
}

// TestConfineFailsWithoutATenant: what the code above forgets is an error.
func TestConfineFailsWithoutATenant(t *testing.T) {
	all, confined := clients(t)
	_, err := all.Put(t.Context(), "/pods/web", "of none")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, call := range map[string]func(context.Context) error{
		"get":    func(ctx context.Context) error { _, err := confined.KV.Get(ctx, "/pods/web"); return err },
		"put":    func(ctx context.Context) error { _, err := confined.Put(ctx, "/pods/web", ""); return err },
		"delete": func(ctx context.Context) error { _, err := confined.Delete(ctx, "/pods/web"); return err },
		"do":     func(ctx context.Context) error { _, err := confined.Do(ctx, clientv3.OpGet("/pods/web")); return err },
		"transaction": func(ctx context.Context) error {
			_, err := confined.Txn(ctx).If(clientv3.Compare(clientv3.Version("/pods/web"), ">", 0)).
				Then(clientv3.OpGet("/pods/web")).Else(clientv3.OpDelete("/pods/web")).Commit()
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := confined.List(ctx, "/pods/", kubernetes.ListOptions{})
			return err
		},
		"count": func(ctx context.Context) error {
			_, err := confined.Count(ctx, "/pods/", kubernetes.CountOptions{})
			return err
		},
	} {
		for whose, ctx := range map[string]context.Context{
			"none": t.Context(), "two": keyspace.NewContext(keyspace.NewContext(t.Context(), "red"), "blue"),
		} {
			t.Run(name+" of "+whose, func(t *testing.T) {
				NewWithT(t).Expect(call(ctx)).To(MatchError(ContainSubstring("the context ")))
			})
		}
	}
	t.Run("watch", func(t *testing.T) {
		NewWithT(t).Eventually(confined.Watch(t.Context(), "/pods/web"), "20s").Should(BeClosed())
	})
}

// TestConfineSharesNothing: revisions and leases are of all tenants.
func TestConfineSharesNothing(t *testing.T) {
	g := NewWithT(t)
	_, confined := clients(t)
	ctx := keyspace.NewContext(t.Context(), "red")
	granted, err := confined.Grant(ctx, 60)
	g.Expect(err).NotTo(HaveOccurred(), "events have leases")
	_, err = confined.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
	g.Expect(err).To(HaveOccurred())
	_, err = confined.Leases(ctx)
	g.Expect(err).To(HaveOccurred())
	_, err = confined.Revoke(ctx, granted.ID)
	g.Expect(err).To(HaveOccurred())
	_, err = confined.Compact(ctx, 1)
	g.Expect(err).To(HaveOccurred())
}

// TestConfineRejectsOtherKeys: red's prefix is the beginning of red1's.
func TestConfineRejectsOtherKeys(t *testing.T) {
	all, confined := clients(t)
	_, err := all.Put(t.Context(), "/controlplanes/red1/pods/web", "of red1")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	ctx := keyspace.NewContext(t.Context(), "red")
	everything := []clientv3.OpOption{clientv3.WithFromKey()}
	for name, op := range map[string]clientv3.Op{
		"key":              clientv3.OpGet("1/pods/web"),
		"no key":           clientv3.OpGet("", everything...),
		"all keys":         clientv3.OpGet("/", everything...),
		"prefix":           clientv3.OpDelete("1", clientv3.WithPrefix()),
		"end":              clientv3.OpDelete("/pods", clientv3.WithRange("2")),
		"write":            clientv3.OpPut("1/pods/web", ""),
		"in a transaction": clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("/a"), clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpDelete("1/pods/web")})}, nil),
		"compared":         clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Version("1/pods/web"), "=", 1)}, nil, nil),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := confined.Do(ctx, op)
			g.Expect(err).To(MatchError(Or(ContainSubstring("of a tenant"), ContainSubstring("of no tenant"))))
			_, err = confined.Txn(ctx).Then(op).Commit()
			g.Expect(err).To(HaveOccurred())
			_, err = confined.Txn(ctx).Else(op).Commit()
			g.Expect(err).To(HaveOccurred())
		})
	}
	t.Run("watch", func(t *testing.T) {
		NewWithT(t).Eventually(confined.Watch(ctx, "/", everything...), "20s").Should(BeClosed())
	})
	t.Run("the greatest range", func(t *testing.T) {
		g := NewWithT(t)
		got, err := confined.KV.Get(ctx, "/", clientv3.WithPrefix())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Kvs).To(BeEmpty())
	})
}

// clients starts an etcd and returns a client of all of it, and a confined one.
func clients(t *testing.T) (all *clientv3.Client, confined *kubernetes.Client) {
	t.Helper()
	_, all = etcdtest.Start(t)
	own, err := clientv3.New(clientv3.Config{Endpoints: all.Endpoints(), DialTimeout: time.Minute, Logger: zap.NewNop()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = own.Close() })
	return all, keyspace.Confine(own)
}

// TestConfineTo: the client of one tenant reaches no other one, whatever the
// context says.
func TestConfineTo(t *testing.T) {
	g := NewWithT(t)
	all, _ := clients(t)
	own, err := clientv3.New(clientv3.Config{Endpoints: all.Endpoints(), Logger: zap.NewNop()})
	g.Expect(err).NotTo(HaveOccurred())
	defer own.Close()
	confined := keyspace.ConfineTo(own, "red")
	red, blue := keyspace.NewContext(t.Context(), "red"), keyspace.NewContext(t.Context(), "blue")
	_, err = confined.Put(red, "/pods/web", "of red")
	g.Expect(err).NotTo(HaveOccurred())
	got, err := all.Get(t.Context(), "/controlplanes/red/pods/web")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Kvs).To(HaveLen(1))
	for ctx, want := range map[context.Context]string{blue: `tenant "red" cannot reach tenant "blue"`, t.Context(): "no tenant"} {
		_, err = confined.Put(ctx, "/pods/web", "of another")
		g.Expect(err).To(MatchError(ContainSubstring(want)))
		_, err = confined.KV.Get(ctx, "/pods/web")
		g.Expect(err).To(MatchError(ContainSubstring(want)))
		_, err = confined.Txn(ctx).Then(clientv3.OpDelete("/pods/web")).Commit()
		g.Expect(err).To(MatchError(ContainSubstring(want)))
		g.Eventually(confined.Watch(ctx, "/pods/", clientv3.WithPrefix()), "20s").Should(BeClosed())
	}
}
