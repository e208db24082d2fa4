package app

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/controllers/addons/metricsapi"

	"github.com/virtualcluster/virtualcluster/standalone/internal/apitest"
)

func TestListenForAgent(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change  func(*Options)
		address string // host, or all of it; empty for none
		listens bool
		want    string // part of the error; empty for none
	}{
		"in this process":        {func(*Options) {}, "127.0.0.1", true, ""},
		"on every address":       {func(o *Options) { o.Listen = "0.0.0.0" }, "127.0.0.1", true, ""},
		"behind another address": {func(o *Options) { o.SyncerOptions.AgentAddress = "192.0.2.1:7" }, "192.0.2.1:7", true, ""},
		"in another process":     {func(o *Options) { o.Agent, o.SyncerOptions.AgentAddress = false, "192.0.2.1:7" }, "192.0.2.1:7", false, ""},
		"nowhere":                {func(o *Options) { o.Agent = false }, "", false, ""},
		"at a port in use":       {func(o *Options) { o.AgentPort = number }, "", false, "listen for vn-agent (see --agent-port): "},
		"at an address of no link": {
			func(o *Options) { o.Listen = "192.0.2.77" }, "", false, "listen for vn-agent (see --agent-port): ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &standalone{opts: DefaultOptions()}
			c.change(&s.opts)
			listener, address, err := s.listenForAgent()
			contains(t, err, c.want)
			if (listener != nil && err == nil) != c.listens {
				t.Fatalf("it listens at %v, want %t", listener, c.listens)
			}
			host, _, split := net.SplitHostPort(address)
			if address != c.address && (split != nil || host != c.address) {
				t.Errorf("it is reached at %q, want %q", address, c.address)
			}
			if !c.listens {
				return
			}
			if conn, err := net.Dial("tcp", listener.Addr().String()); err != nil {
				t.Error(err)
			} else if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAgentCertificate: apiservers verify the agent under the address and the
// name by which they call it, by an authority that outlives the process.
func TestAgentCertificate(t *testing.T) {
	s := &standalone{opts: DefaultOptions(), dir: openDir(t)}
	s.opts.Listen = "0.0.0.0"
	first, err := s.agentCertificate()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(first.File(), first.File())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(first.CA()) {
		t.Fatal("there is no authority")
	}
	for _, name := range []string{"127.0.0.1", metricsapi.ServerName} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	second, err := s.agentCertificate()
	if err != nil || !slices.Equal(second.CA(), first.CA()) {
		t.Errorf("there is another authority after a restart: %v", err)
	}
	if block, _ := pem.Decode(second.CA()); block == nil {
		t.Error("the authority is no PEM")
	}
	if err := os.RemoveAll(s.dir.File(agentDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.dir.File(agentDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.agentCertificate()
	contains(t, err, "vn-agent/ca.pem")
}

// TestEgressPolicy: tenants' apiservers are kept from the super cluster's own
// networks, and may connect to those that an admin names.
func TestEgressPolicy(t *testing.T) {
	_, super := apitest.Serve(t, map[string][]apitest.Answer{
		"GET /api/v1/pods":  {{Object: &corev1.PodList{}}},
		"GET /api/v1/nodes": {{Object: &corev1.NodeList{}}},
	})
	s := &standalone{opts: DefaultOptions()}
	s.opts.TenantEgress, s.opts.SyncerOptions.Registerer = []string{"192.0.2.0/24"}, prometheus.NewRegistry()
	policy, err := s.egressPolicy(t.Context(), super, "127.0.0.1:10250")
	if err != nil {
		t.Fatal(err)
	}
	if policy.Agent != "127.0.0.1:10250" || !slices.Equal(policy.Outside, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}) {
		t.Errorf("the policy is %+v", policy)
	}
	for _, address := range []string{"10.128.0.1", "10.64.0.1", "10.104.0.1", "10.96.0.1"} { // of a pod, tenants' Services, and a Service
		if !slices.ContainsFunc(policy.Internal, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(address)) }) {
			t.Errorf("%s is not in the super cluster's networks %v", address, policy.Internal)
		}
	}
	_, err = s.egressPolicy(t.Context(), super, "")
	contains(t, err, "duplicate metrics")
	_, err = s.egressPolicy(t.Context(), notCalled, "")
	contains(t, err, "a client for pods and nodes")
	s.opts.TenantEgress = []string{"here"}
	_, err = s.egressPolicy(t.Context(), super, "")
	contains(t, err, "--tenant-egress-cidr: ")
}
