package hosted_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestConnectionsWithoutRequests: clients that finish the handshake and send
// nothing displace each other, and no client that has sent an authorized
// request, with either version of HTTP.
func TestConnectionsWithoutRequests(t *testing.T) {
	t.Parallel()
	for isolation, spec := range map[string]hosted.Spec{"dedicated": {Name: "crowded"}, "shared": {Name: "crowded-shared", Shared: true}} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			plane := runReady(t, shared, spec)
			platform, err := clientcmd.RESTConfigFromKubeConfig(plane.PlatformKubeconfig())
			g.Expect(err).NotTo(HaveOccurred())
			old := plane.RESTConfig()
			old.NextProtos = []string{"http/1.1"}
			clients := map[string]*dialed{"platform": connect(t, platform), "HTTP/2": connect(t, plane.RESTConfig()), "HTTP/1.1": connect(t, old)}

			first := crowd(t, plane, 300)
			g.Expect(first.SetReadDeadline(time.Now().Add(soon))).To(Succeed())
			_, err = io.Copy(io.Discard, first)
			g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeFalse(), "the oldest of too many connections is closed")
			for name, client := range clients {
				read(t, client.client)
				g.Expect(client.dials.Load()).To(BeEquivalentTo(1), "the connection of %s was closed", name)
			}
			read(t, connect(t, plane.RESTConfig()).client)
		})
	}
}

// dialed is a client that counts its connections.
type dialed struct {
	client kubernetes.Interface
	dials  atomic.Int64
}

func connect(t *testing.T, config *rest.Config) *dialed {
	t.Helper()
	d := &dialed{}
	config = rest.CopyConfig(config)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		d.dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	d.client = clientOf(t, config)
	read(t, d.client)
	return d
}

// crowd opens a number of connections, and returns the first.
func crowd(t *testing.T, plane *hosted.ControlPlane, number int) (first net.Conn) {
	t.Helper()
	g := NewWithT(t)
	server, err := url.Parse(plane.Endpoint())
	g.Expect(err).NotTo(HaveOccurred())
	dialer := &tls.Dialer{Config: &tls.Config{ServerName: plane.ServerName(), InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	for range number {
		conn, err := dialer.DialContext(t.Context(), "tcp", server.Host)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = conn.Close() })
		if first == nil {
			first = conn
		}
	}
	return first
}
