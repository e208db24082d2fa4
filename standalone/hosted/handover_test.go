package hosted_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
)

// peer is a host with a router of its own, which passes connections on to
// another one.
type peer struct {
	*hosted.Host

	router *hosted.Router
	// elsewhere are the addresses of the other one.
	elsewhere atomic.Pointer[hosted.Addresses]
}

func startPeer(t *testing.T, keyring hosted.Keyring, etcd []string) *peer {
	t.Helper()
	g := NewWithT(t)
	p := &peer{}
	var err error
	p.router, err = hosted.Listen(t.Context(), hosted.RouterOptions{
		IP: net.IPv4(127, 0, 0, 1), Keys: keyring, Elsewhere: func(context.Context, string) (hosted.Addresses, bool) {
			at := p.elsewhere.Load()
			if at == nil {
				return hosted.Addresses{}, false
			}
			return *at, true
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.router.Stop)
	p.Host, err = hosted.Start(t.Context(), hosted.Options{
		Store: &hosted.RemoteStore{Endpoints: etcd}, Keys: keyring, Router: p.router, Advertise: "127.0.0.1", Log: logr.Discard(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { stopHost(t, p.Host) })
	return p
}

// passOnTo has connections to control planes that are not here passed on.
func (p *peer) passOnTo(other *peer) {
	p.elsewhere.Store(&hosted.Addresses{Peers: net.JoinHostPort("127.0.0.1", strconv.Itoa(other.router.PeerPort()))})
}

// through returns a client that connects to the router of a host, whatever the
// address of the control plane.
func (p *peer) through(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Host = "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(p.router.Port()))
	return clientOf(t, config)
}

// TestHandOver: a control plane moves to another host, while a client of the first
// one lists all the time and sees no failure; the controllers stop first.
func TestHandOver(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, etcd := etcdtest.Start(t)
	keyring := hosted.KeyringIn(t.TempDir())
	first, second := startPeer(t, keyring, etcd.Endpoints()), startPeer(t, keyring, etcd.Endpoints())
	first.passOnTo(second)
	second.passOnTo(first)
	spec := hosted.Spec{Name: "red", Shared: true}
	before := runReady(t, first.Host, spec)
	config := before.RESTConfig()
	makeConfigMap(t, first.through(t, config), "kept", "yes")
	g.Expect(configMapValue(t, second.through(t, config), "kept")).To(Equal("yes"), "passed on")

	ctx, cancel := context.WithCancel(t.Context())
	var listing sync.WaitGroup
	for _, client := range []kubernetes.Interface{first.through(t, config), second.through(t, config)} {
		listing.Go(func() {
			pace := time.NewTicker(time.Millisecond)
			defer pace.Stop()
			for ; ctx.Err() == nil; <-pace.C {
				if _, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err != nil && ctx.Err() == nil {
					t.Errorf("a list failed: %v", err)
				}
			}
		})
	}
	stopping, stopped := context.WithTimeout(t.Context(), later)
	defer stopped()
	g.Expect(before.StopControllers(stopping)).To(Succeed())
	g.Expect(before.StopControllers(stopping)).To(Succeed(), "a second time")
	g.Expect(before.Done()).NotTo(BeClosed())
	after := runReady(t, second.Host, spec)
	before.Retire()
	g.Eventually(before.Done()).WithTimeout(later).Should(BeClosed())
	g.Expect(before.Err()).NotTo(HaveOccurred())
	cancel()
	listing.Wait()

	g.Expect(after.RESTConfig().CertData).To(Equal(config.CertData), "the keys are the same")
	client := first.through(t, config)
	g.Expect(configMapValue(t, client, "kept")).To(Equal("yes"), "passed on in the other direction")
	t.Run("controllers", func(t *testing.T) { deploymentBecomesPods(t, client) })
}

// TestConnectionsAreNotPassedOnTwice: hosts that take each other for that of a
// control plane close its connections.
func TestConnectionsAreNotPassedOnTwice(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	_, etcd := etcdtest.Start(t)
	keyring := hosted.KeyringIn(t.TempDir())
	first, second := startPeer(t, keyring, etcd.Endpoints()), startPeer(t, keyring, etcd.Endpoints())
	plane := runReady(t, first.Host, hosted.Spec{Name: "red", Shared: true})
	config := plane.RESTConfig()
	stop(t, plane)
	first.passOnTo(second)
	second.passOnTo(first)
	config.Timeout = later
	_, err := first.through(t, config).Discovery().ServerVersion()
	g.Expect(err).To(MatchError(Or(ContainSubstring("EOF"), ContainSubstring("reset by peer"))))
	first.elsewhere.Store(&hosted.Addresses{Peers: "127.0.0.1:1"})
	_, err = first.through(t, config).Discovery().ServerVersion()
	g.Expect(err).To(MatchError(Or(ContainSubstring("EOF"), ContainSubstring("reset by peer"))))
}
