package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func counters() *Metrics {
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	return m
}

// trap is a loopback server that no tenant may connect to. It fails the test
// when a connection comes.
func trap(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			t.Error("a connection came")
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestDialRefuses(t *testing.T) {
	closed := policy()
	closed.Outside = nil
	open := policy()
	_, port, _ := net.SplitHostPort(trap(t))
	for name, tc := range map[string]struct {
		policy           *Policy
		purpose          Purpose
		network, address string
		want             Reason
	}{
		"loopback":                         {open, Webhooks, "tcp", "127.0.0.1:" + port, Reserved},
		"loopback, mapped":                 {open, Webhooks, "tcp", "[::ffff:127.0.0.1]:" + port, Reserved},
		"loopback, over IPv4 alone":        {open, Proxies, "tcp4", "127.0.0.1:" + port, Reserved},
		"a name of loopback":               {open, APIServices, "tcp", "localhost:" + port, Reserved},
		"a name where names are closed":    {closed, APIServices, "tcp", "localhost:" + port, Unresolved},
		"no port where names are closed":   {closed, APIServices, "tcp", "localhost", Unresolved},
		"a name that does not exist":       {open, Webhooks, "tcp", "no-such-host.invalid:" + port, Unresolved},
		"a socket":                         {open, Webhooks, "unix", "/run/etcd.sock", Reserved},
		"a datagram":                       {open, Webhooks, "udp", "10.200.0.1:53", Reserved},
		"outside":                          {open, Webhooks, "tcp", "203.0.113.7:443", Outside},
		"another tenant's pod":             {open, Webhooks, "tcp", "10.1.0.2:443", Foreign},
		"a kubelet that is not vn-agent":   {open, Kubelets, "tcp", "127.0.0.1:" + port, NoAgent},
		"a kubelet in the tenant's pod":    {open, Kubelets, "tcp", "10.1.0.1:443", NoAgent},
		"vn-agent, by a webhook":           {withAgent(open, "127.0.0.1:"+port), Webhooks, "tcp", "127.0.0.1:" + port, Reserved},
		"vn-agent, by a proxy":             {withAgent(open, "127.0.0.1:"+port), Proxies, "tcp", "127.0.0.1:" + port, Reserved},
		"vn-agent's host, at another port": {withAgent(open, "127.0.0.1:1"), Kubelets, "tcp", "127.0.0.1:" + port, NoAgent},
		"an empty address without agent":   {open, Kubelets, "tcp", "", NoAgent},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tc.policy.For("red").Dialer(tc.purpose)(t.Context(), tc.network, tc.address)
			if err == nil {
				_ = conn.Close()
				t.Fatal("connected")
			}
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || refused.Reason != tc.want || refused.Address != tc.address {
				t.Fatalf("got %#v (%v), want %q", refused, err, tc.want)
			}
			if got := testutil.ToFloat64(tc.policy.Metrics.refusals.WithLabelValues(string(tc.purpose), string(tc.want))); got < 1 {
				t.Errorf("counted %v", got)
			}
		})
	}
}

func withAgent(p *Policy, address string) *Policy {
	changed := *p
	changed.Agent = address
	return &changed
}

// TestRefusalTellsNoAddress: what a name is resolved to is the platform's.
func TestRefusalTellsNoAddress(t *testing.T) {
	_, err := policy().For("red").Dialer(Webhooks)(t.Context(), "tcp", "localhost:1")
	if err == nil || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "::1") {
		t.Errorf("got %v", err)
	}
	_, unknown := policy().For("red").Dialer(Webhooks)(t.Context(), "tcp", "no-such-host.invalid:1")
	if unknown == nil || strings.ReplaceAll(unknown.Error(), "no-such-host.invalid", "localhost") != err.Error() {
		t.Errorf("got %v, want the same as of a name that is resolved: %v", unknown, err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := policy().For("red").Dialer(Webhooks)(ctx, "tcp", "localhost:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAgentIsReached(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "agent") }))
	defer server.Close()
	p := withAgent(policy(), server.Listener.Addr().String())
	for _, purpose := range []Purpose{Kubelets, APIServices} {
		conn, err := p.For("red").Dialer(purpose)(t.Context(), "tcp", p.Agent)
		if err != nil {
			t.Fatalf("%s: %v", purpose, err)
		}
		_ = conn.Close()
	}
}

func TestClosedConnectsToNothing(t *testing.T) {
	for _, address := range []string{trap(t), "10.1.0.1:443"} {
		if _, err := (Closed{}).Dialer(Webhooks)(t.Context(), "tcp", address); err == nil {
			t.Errorf("%s: connected", address)
		}
	}
}
