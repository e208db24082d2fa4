package chain_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const later = time.Minute

func TestMain(m *testing.M) {
	utilruntime.ReallyCrash = false // as a host does
	if os.Getenv("CHAIN_LOG") == "" {
		klog.SetLogger(logr.Discard())
	}
	code := m.Run()
	if err := common.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newChain returns the chain that tests share, without tenants and on an empty
// etcd. The client is of the whole etcd. A test that runs in parallel with others
// starts a chain of its own.
func newChain(t testing.TB) (*chain.Chain, *clientv3.Client) {
	t.Helper()
	common.use(t)
	return common.chain, common.all
}

// secondChain returns another chain on the etcd of newChain, until ctx ends.
func secondChain(ctx context.Context, t testing.TB) *chain.Chain {
	t.Helper()
	return chainOn(ctx, t, common.source, common.all)
}

// startChain starts an etcd and a chain on it. The client is of the whole etcd.
func startChain(t testing.TB) (*chain.Chain, *clientv3.Client) {
	t.Helper()
	g := NewWithT(t)
	kv, all := etcdtest.Start(t)
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	g.Expect(err).NotTo(HaveOccurred())
	run(t, source.Run)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return chainOn(ctx, t, source, all), all
}

// chainOn returns a chain on an etcd.
func chainOn(ctx context.Context, t testing.TB, source *feed.Feed, all *clientv3.Client) *chain.Chain {
	t.Helper()
	confined := keyspace.Confine(clientOf(t, all.Endpoints()[0]))
	c, err := chain.New(ctx, chain.Options{Store: confined, Feed: source, OnFailure: func(tenant string, err error) {
		t.Errorf("tenant %s: %v", tenant, err)
	}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

// run runs a function until the test has ended.
func run(t testing.TB, function func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- function(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func clientOf(t testing.TB, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: later, Logger: zap.NewNop()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// add adds a tenant and returns a client of its control plane.
func add(t testing.TB, c *chain.Chain, name string, change ...func(*chain.Spec)) (*chain.Tenant, kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	spec := specOf(t, name)
	for _, f := range change {
		f(&spec)
	}
	tenant, err := c.Add(spec)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	return tenant, client
}

// createNamespace creates a namespace with labels, in pairs of key and value.
func createNamespace(t testing.TB, client kubernetes.Interface, name string, labels ...string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for i := 0; i < len(labels); i += 2 {
		namespace.Labels[labels[i]] = labels[i+1]
	}
	_, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// specOf returns a tenant that has the same addresses as all others.
func specOf(t testing.TB, name string) chain.Spec {
	t.Helper()
	_, services, err := net.ParseCIDR("10.96.0.0/16")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return chain.Spec{Name: name, ClusterDomain: "cluster.local", ServiceCIDRs: []net.IPNet{*services}, Network: egress.Closed{}}
}
