package chain_test

import (
	"context"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/memtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// TestAChainLikeAnother has documents and the template of the first one, serves
// its own tenant, and leaves nothing behind when it ends.
func TestAChainLikeAnother(t *testing.T) {
	const chains = 5
	g := NewWithT(t)
	kv, all := etcdtest.Start(t)
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source.Run)
	ctx := t.Context()
	first := chainOn(ctx, t, source, all)
	_, _ = add(t, first, "shared")
	serve := func() {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		client := clientOf(t, all.Endpoints()[0])
		like, err := chain.New(ctx, chain.Options{Store: keyspace.ConfineTo(client, "own"), Feed: source, Like: first})
		g.Expect(err).NotTo(HaveOccurred())
		tenant, own := add(t, like, "own")
		g.Expect(like.Bootstrap(ctx, tenant)).To(Succeed())
		_, err = own.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = own.Discovery().OpenAPISchema()
		g.Expect(err).NotTo(HaveOccurred())
		_, other := add(t, like, "shared")
		_, err = other.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		g.Expect(err).To(MatchError(ContainSubstring(`tenant "own" cannot reach tenant "shared"`)))
		like.Remove(tenant)
		cancel()
		g.Expect(like.Wait()).To(Succeed())
		_ = client.Close()
	}
	serve()
	before, goroutines := memtest.Heap(), runtime.NumGoroutine()
	for range chains {
		serve()
	}
	g.Eventually(runtime.NumGoroutine, later).Should(BeNumerically("<", goroutines+chains))
	g.Expect((memtest.Heap()-before)/chains).To(BeNumerically("<", 500<<10), "of a chain that has ended")
	runtime.KeepAlive(first)
}
