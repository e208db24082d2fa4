package chain_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const later = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv("CHAIN_LOG") == "" {
		klog.SetLogger(logr.Discard())
	}
	os.Exit(m.Run())
}

// newChain starts an etcd and a chain on it.
func newChain(t *testing.T) (*chain.Chain, *clientv3.Client) {
	t.Helper()
	g := NewWithT(t)
	endpoint := startEtcd(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c, err := chain.New(ctx, chain.Options{Store: keyspace.Confine(clientOf(t, endpoint)), Informers: stockInformers(ctx)})
	g.Expect(err).NotTo(HaveOccurred())
	return c, clientOf(t, endpoint)
}

// stockInformers have a watch and goroutines for each kind of each tenant.
func stockInformers(ctx context.Context) func(string, kubernetes.Interface) informers.SharedInformerFactory {
	return func(_ string, client kubernetes.Interface) informers.SharedInformerFactory {
		factory := informers.NewSharedInformerFactory(client, 0)
		rbac := factory.Rbac().V1()
		rbac.Roles().Informer()
		rbac.RoleBindings().Informer()
		rbac.ClusterRoles().Informer()
		rbac.ClusterRoleBindings().Informer()
		factory.Start(ctx.Done())
		return factory
	}
}

func startEtcd(t *testing.T) (endpoint string) {
	t.Helper()
	dir := t.TempDir()
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, "data")
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(dir, "c.sock")}}
	cfg.ListenPeerUrls = nil
	cfg.UnsafeNoFsync = true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(cfg)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Close)
	NewWithT(t).Eventually(server.Server.ReadyNotify(), later).Should(BeClosed())
	return "unix://" + cfg.ListenClientUrls[0].Path
}

func clientOf(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: later, Logger: zap.NewNop()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// add adds a tenant and returns a client of its control plane.
func add(t *testing.T, c *chain.Chain, name string) (*chain.Tenant, kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	tenant, err := c.Add(chain.Spec{Name: name})
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	return tenant, client
}
