package hosted_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// startOn starts a host on an etcd in other processes, with the PKI in dir.
func startOn(t *testing.T, dir string, etcd *clientv3.Client) *hosted.Host {
	t.Helper()
	opts := options(dir)
	opts.Store = &hosted.RemoteStore{Endpoints: etcd.Endpoints()}
	host, err := hosted.Start(t.Context(), opts)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { stopHost(t, host) })
	return host
}

// TestRemoteStore: control planes of both isolations work on an etcd that the
// host does not run, with etcd's default limits, and another host continues
// where the first one has stopped.
func TestRemoteStore(t *testing.T) {
	t.Parallel()
	for name, isShared := range map[string]bool{"Shared": true, "Dedicated": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			_, etcd := etcdtest.Start(t)
			dir := t.TempDir()
			spec := hosted.Spec{Name: "red", Shared: isShared}
			first, second := startOn(t, dir, etcd), startOn(t, dir, etcd)
			before := runReady(t, first, spec)
			client := clientOf(t, before.RESTConfig())
			t.Run("works", func(t *testing.T) {
				t.Run("controllers", func(t *testing.T) { deploymentBecomesPods(t, client) })
			})
			makeConfigMap(t, client, "kept", "yes")
			runReady(t, first, hosted.Spec{Name: "red1", Shared: isShared})
			stop(t, before)

			after := runReady(t, second, spec)
			client = clientOf(t, after.RESTConfig())
			g.Expect(configMapValue(t, client, "kept")).To(Equal("yes"))
			t.Run("works on", func(t *testing.T) {
				t.Run("namespaces", func(t *testing.T) { namespaceGoesAway(t, client) })
			})
			g.Expect(etcd.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithCountOnly())).To(
				HaveField("Count", BeNumerically(">", second.Usage("red").Objects)), "those of both control planes")

			ctx, cancel := context.WithTimeout(t.Context(), later)
			defer cancel()
			g.Expect(second.Delete(ctx, "red")).To(Succeed())
			g.Expect(etcd.Get(t.Context(), "/controlplanes/red/", clientv3.WithPrefix())).To(HaveField("Kvs", BeEmpty()))
			g.Expect(etcd.Get(t.Context(), "/controlplanes/red1/", clientv3.WithPrefix())).NotTo(HaveField("Kvs", BeEmpty()))
		})
	}
}

// TestLimitsOfARemoteStore: the limits of a control plane hold on an etcd that
// knows of none, whichever host has written its objects.
func TestLimitsOfARemoteStore(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, etcd := etcdtest.Start(t)
	dir := t.TempDir()
	spec := hosted.Spec{Name: "full", Shared: true, Limits: quota.Limits{Bytes: 3 * mebi, Objects: 1000}}
	first, second := startOn(t, dir, etcd), startOn(t, dir, etcd)
	plane := runReady(t, first, spec)
	err := fill(t, clientOf(t, plane.RESTConfig()))
	g.Expect(err).To(Satisfy(apierrors.IsForbidden))
	g.Expect(err).To(MatchError(ContainSubstring("storage of this cluster is limited to 3Mi")))
	used := first.Usage("full")
	g.Expect(used.Bytes).To(And(BeNumerically(">", 2*mebi), BeNumerically("<=", 3*mebi)))
	stop(t, plane)
	g.Expect(first.Usage("full")).To(BeZero(), "its account is closed")

	plane = runReady(t, second, spec)
	client := clientOf(t, plane.RESTConfig())
	g.Expect(second.Usage("full").Bytes).To(BeNumerically("~", used.Bytes, mebi/2))
	g.Expect(fill(t, client)).To(Satisfy(apierrors.IsAlreadyExists))
	g.Expect(client.CoreV1().ConfigMaps("default").Delete(t.Context(), "fill-0", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error { return fill(t, client) }).WithTimeout(soon).Should(Satisfy(apierrors.IsAlreadyExists))
}

// TestHostsShareAPort: hosts with stores of their own serve at one port, and one
// that stops does not close it. Nothing is on disk but the keys.
func TestHostsShareAPort(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	keyring := hosted.KeyringIn(t.TempDir())
	router, err := hosted.Listen(t.Context(), hosted.RouterOptions{IP: net.IPv4(127, 0, 0, 1), Keys: keyring})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(router.Stop)
	start := func() *hosted.Host {
		_, etcd := etcdtest.Start(t)
		host, err := hosted.Start(t.Context(), hosted.Options{
			Store: &hosted.RemoteStore{Endpoints: etcd.Endpoints()}, Keys: keyring, Router: router,
			Advertise: "localhost", AdvertisePort: router.Port(), Log: logr.Discard(),
		})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { stopHost(t, host) })
		return host
	}
	first, second := start(), start()
	red, blue := runReady(t, first, hosted.Spec{Name: "red", Shared: true}), runReady(t, second, hosted.Spec{Name: "blue", Shared: true})
	g.Expect(red.Endpoint()).To(And(Equal(blue.Endpoint()), HavePrefix("https://localhost:")))
	makeConfigMap(t, clientOf(t, red.RESTConfig()), "whose", "red's")
	makeConfigMap(t, clientOf(t, blue.RESTConfig()), "whose", "blue's")
	g.Expect(configMapValue(t, clientOf(t, red.RESTConfig()), "whose")).To(Equal("red's"))

	woken := make(chan struct{}, 1)
	g.Expect(first.Sleep(t.Context(), "red", func() { woken <- struct{}{} })).To(Succeed())
	g.Expect(router.Sleeping()).To(Equal(1))
	client, value := clientOf(t, red.RESTConfig()), make(chan string)
	go func() {
		config, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "whose", metav1.GetOptions{})
		if err != nil {
			t.Error(err)
		}
		value <- config.Data["value"]
	}()
	g.Eventually(woken).WithTimeout(soon).Should(Receive())
	runReady(t, first, hosted.Spec{Name: "red", Shared: true})
	g.Eventually(value).WithTimeout(soon).Should(Receive(Equal("red's")))

	stopHost(t, first)
	g.Expect(configMapValue(t, clientOf(t, blue.RESTConfig()), "whose")).To(Equal("blue's"))
}

// TestUnusableStores: a host that cannot use its store does not start, and says
// what it tried.
func TestUnusableStores(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*hosted.Options)
		want   string
	}{
		"no endpoints":                     {func(o *hosted.Options) { o.Store = &hosted.RemoteStore{} }, "needs endpoints"},
		"a super cluster":                  {func(o *hosted.Options) { o.Super, o.Store = "super", &hosted.RemoteStore{} }, "cannot use a remote store"},
		"a shared port without an address": {func(o *hosted.Options) { o.Router = &hosted.Router{} }, "needs an address for clients"},
		"no place for keys": {func(o *hosted.Options) {
			o.Dir, o.Store = "", &hosted.RemoteStore{Endpoints: []string{"unix:///nowhere"}}
		}, "and a keyring"},
		"nothing there": {func(o *hosted.Options) {
			o.Store = &hosted.RemoteStore{Endpoints: []string{"unix:///nowhere"}}
		}, "unix:///nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options(t.TempDir())
			test.change(&opts)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := hosted.Start(ctx, opts)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
