package hosted

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestReadsInProcess: reads and their errors are the same with and without a
// connection.
func TestReadsInProcess(t *testing.T) {
	g := NewWithT(t)
	all := openStores(t, storeOptions(t.TempDir()))
	defer closeStores(t, all)
	local, err := all.tenants.connect()
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = local.Close() }()
	readInProcess(local, all.tenants.server.Server)
	for _, key := range []string{"/a", "/b", "/c"} {
		_, err := local.Put(t.Context(), key, "value of "+key)
		g.Expect(err).NotTo(HaveOccurred())
	}
	last, err := local.Put(t.Context(), "/a", "changed")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = local.Compact(t.Context(), last.Header.Revision)
	g.Expect(err).NotTo(HaveOccurred())

	ended, end := context.WithCancel(t.Context())
	end()
	for name, test := range map[string]struct {
		ctx  context.Context
		op   clientv3.Op
		fail error
	}{
		"a key":             {t.Context(), clientv3.OpGet("/a"), nil},
		"no key":            {t.Context(), clientv3.OpGet("/d"), nil},
		"a range":           {t.Context(), clientv3.OpGet("/", clientv3.WithPrefix()), nil},
		"a page":            {t.Context(), clientv3.OpGet("/", clientv3.WithPrefix(), clientv3.WithLimit(2)), nil},
		"a count":           {t.Context(), clientv3.OpGet("/", clientv3.WithPrefix(), clientv3.WithCountOnly()), nil},
		"a revision":        {t.Context(), clientv3.OpGet("/a", clientv3.WithRev(last.Header.Revision)), nil},
		"a future revision": {t.Context(), clientv3.OpGet("/a", clientv3.WithRev(last.Header.Revision+9)), rpctypes.ErrFutureRev},
		"an old revision":   {t.Context(), clientv3.OpGet("/a", clientv3.WithRev(1)), rpctypes.ErrCompacted},
		"an empty key":      {t.Context(), clientv3.OpGet(""), rpctypes.ErrEmptyKey},
		"an ended context":  {ended, clientv3.OpGet("/a"), context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := local.Do(test.ctx, test.op)
			want, wantErr := all.tenants.client.Do(test.ctx, test.op)
			if test.fail != nil {
				g.Expect(clientv3.ContextError(test.ctx, err)).To(MatchError(test.fail))
				g.Expect(clientv3.ContextError(test.ctx, wantErr)).To(MatchError(test.fail))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(wantErr).NotTo(HaveOccurred())
			g.Expect(got.Get().Kvs).To(ConsistOf(want.Get().Kvs))
			g.Expect(got.Get().Count).To(Equal(want.Get().Count))
			g.Expect(got.Get().More).To(Equal(want.Get().More))
			g.Expect(got.Get().Header.Revision).To(Equal(want.Get().Header.Revision))
		})
	}
}

// TestReadsInProcessOfAStoreThatStopped: such a read fails like one whose
// connection is lost.
func TestReadsInProcessOfAStoreThatStopped(t *testing.T) {
	g := NewWithT(t)
	all := openStores(t, storeOptions(t.TempDir()))
	local, err := all.tenants.connect()
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = local.Close() }()
	readInProcess(local, all.tenants.server.Server)
	closeStores(t, all)
	_, err = local.Get(t.Context(), "/a")
	g.Expect(err).To(HaveOccurred())
	g.Expect(codeOf(err)).To(Equal(codes.Unavailable), "the error is %v, code %s", err, status.Code(err))
}
