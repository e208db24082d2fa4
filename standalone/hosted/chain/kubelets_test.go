package chain_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// Addresses that no test connects to by itself.
const (
	nodeAddress = "192.0.2.1"
	podAddress  = "192.0.2.2"
	elsewhere   = "192.0.2.66:80"
)

// wires is the network of a tenant: it connects some addresses, refuses all
// others, and records what is dialed.
type wires struct {
	to map[string]string

	mu     sync.Mutex
	dialed []string
}

// Dialer implements egress.Network.
func (w *wires) Dialer(purpose egress.Purpose) egress.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		w.mu.Lock()
		w.dialed = append(w.dialed, string(purpose)+" "+address)
		w.mu.Unlock()
		to, ok := w.to[address]
		if !ok {
			return nil, &egress.RefusedError{Address: address, Reason: egress.Reserved}
		}
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, to)
	}
}

// take returns what was dialed since the last call.
func (w *wires) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.dialed
	w.dialed = nil
	return taken
}

// backend answers in the place of a kubelet or a pod. It tells whose it is, and
// the name in the client's certificate.
type backend struct {
	*httptest.Server

	name string
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func newBackend(t *testing.T, name string, certificate *tls.Config) *backend {
	t.Helper()
	b := &backend{name: name, open: map[net.Conn]struct{}{}}
	b.Server = httptest.NewUnstartedServer(b)
	b.EnableHTTP2 = true
	b.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch state {
		case http.StateNew:
			b.open[conn] = struct{}{}
		case http.StateClosed, http.StateHijacked:
			delete(b.open, conn)
		case http.StateActive, http.StateIdle:
		}
	}
	if certificate == nil {
		b.Start()
	} else {
		b.TLS = certificate
		b.StartTLS()
	}
	t.Cleanup(b.Close)
	return b
}

func (b *backend) connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// ServeHTTP implements http.Handler.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := "no certificate"
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		user = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	switch {
	case r.URL.Query().Get("command") == "away" || strings.HasSuffix(r.URL.Path, "/away"):
		http.Redirect(w, r, "http://"+elsewhere+"/", http.StatusFound)
	case r.Header.Get("Upgrade") != "":
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = fmt.Fprintf(buffered, "%s saw %s\n", b.name, user)
			_ = buffered.Flush()
			_, _ = io.Copy(io.Discard, conn) // until the client closes it
			_ = conn.Close()
		}
	default:
		_, _ = fmt.Fprintf(w, "%s saw %s over %s\n", b.name, user, r.Proto)
	}
}

// node is a tenant with a node, a pod on it, and a Service of the pod. They
// have equal names and addresses in all tenants.
type node struct {
	name    string
	spec    chain.Spec
	tenant  *chain.Tenant
	network *wires
	kubelet *backend
	pod     *backend
	server  *httptest.Server
}

func newNode(t *testing.T, c *chain.Chain, name string) *node {
	t.Helper()
	g := NewWithT(t)
	now := time.Now()
	authority, err := pki.NewAuthority(name+" kubelets", time.Hour, now)
	g.Expect(err).NotTo(HaveOccurred())
	serving, err := authority.Server("kubelet", []string{"node-1"}, []net.IP{net.ParseIP(nodeAddress)}, time.Hour, now)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := authority.Client(name+" apiserver", nil, time.Hour, now)
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(serving.CertPEM, serving.KeyPEM)
	g.Expect(err).NotTo(HaveOccurred())
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority.CertPEM)
	n := &node{name: name}
	n.kubelet = newBackend(t, name+"'s kubelet", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12,
	})
	n.pod = newBackend(t, name+"'s pod", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	n.network = &wires{to: map[string]string{
		nodeAddress + ":10250": n.kubelet.Listener.Addr().String(),
		podAddress + ":443":    n.pod.Listener.Addr().String(),
	}}
	spec := specOf(t, name)
	spec.Network, spec.KubeletCA = n.network, authority.CertPEM
	spec.KubeletClient = func() (cert, key []byte) { return client.CertPEM, client.KeyPEM }
	n.spec = spec
	n.serve(t, c, spec)
	n.fill(t)
	return n
}

func (n *node) serve(t *testing.T, c *chain.Chain, spec chain.Spec) {
	t.Helper()
	var err error
	n.tenant, err = c.Add(spec)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(c.Bootstrap(t.Context(), n.tenant)).To(Succeed())
	n.server = httptest.NewServer(c.HandlerOfItself(n.tenant))
	t.Cleanup(n.server.Close)
}

func (n *node) fill(t *testing.T) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	client, err := kubernetes.NewForConfig(n.tenant.Config())
	g.Expect(err).NotTo(HaveOccurred())
	core := client.CoreV1()
	g.Expect(core.Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress}}},
	}, metav1.CreateOptions{})).Error().NotTo(HaveOccurred())
	createTeam(t, client)
	made := pod()
	made.Name, made.Spec.NodeName = "web", "node-1"
	made, err = core.Pods("team").Create(ctx, made, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	made.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: podAddress, PodIPs: []corev1.PodIP{{IP: podAddress}}}
	g.Expect(core.Pods("team").UpdateStatus(ctx, made, metav1.UpdateOptions{})).Error().NotTo(HaveOccurred())
	g.Expect(core.Services("team").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})).Error().NotTo(HaveOccurred())
	g.Expect(core.Endpoints("team").Create(ctx, &corev1.Endpoints{ //nolint:staticcheck // the proxy of Services reads them
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // as above
			Addresses: []corev1.EndpointAddress{{
				IP: podAddress, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "team", Name: made.Name},
			}},
			Ports: []corev1.EndpointPort{{Port: 443}},
		}},
	}, metav1.CreateOptions{})).Error().NotTo(HaveOccurred())
}

// request sends a request to the tenant's apiserver, and returns the status and
// the first bytes after it.
func (n *node) request(t *testing.T, path string, headers ...string) (status int, body string) {
	t.Helper()
	g := NewWithT(t)
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", n.server.Listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	g.Expect(conn.SetDeadline(time.Now().Add(later))).To(Succeed())
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: apiserver\r\n%s\r\n", path, strings.Join(append(slices.Clone(headers), ""), "\r\n"))
	g.Expect(err).NotTo(HaveOccurred())
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		line, _ := reader.ReadString('\n') // may be frames of a websocket
		return response.StatusCode, line
	}
	read, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(read)
}

const (
	aPod      = "/api/v1/namespaces/team/pods/web"
	aService  = "/api/v1/namespaces/team/services"
	aNode     = "/api/v1/nodes/node-1"
	toKubelet = "kubelet " + nodeAddress + ":10250"
	toPod     = "proxy " + podAddress + ":443"
)

var (
	spdy      = []string{"Connection: Upgrade", "Upgrade: SPDY/3.1"}
	websocket = []string{
		"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
	}
)

func protocol(name string) []string {
	return append(slices.Clone(websocket), "Sec-WebSocket-Protocol: "+name)
}

// connecting are the requests by which users of an apiserver cause connections,
// and what is dialed for each.
func connecting() map[string]connection {
	return map[string]connection{
		"logs":                              {aPod + "/log", nil, toKubelet},
		"logs of an unverified kubelet":     {aPod + "/log?insecureSkipTLSVerifyBackend=true", nil, toKubelet},
		"exec, SPDY":                        {aPod + "/exec?command=x&stdout=1", spdy, toKubelet},
		"exec, websocket":                   {aPod + "/exec?command=x&stdout=1", protocol("v4.channel.k8s.io"), toKubelet},
		"attach, SPDY":                      {aPod + "/attach?stdout=1", spdy, toKubelet},
		"attach, websocket":                 {aPod + "/attach?stdout=1", protocol("v4.channel.k8s.io"), toKubelet},
		"port-forward, SPDY":                {aPod + "/portforward", spdy, toKubelet},
		"port-forward, websocket":           {aPod + "/portforward?ports=80", protocol("v4.channel.k8s.io"), toKubelet},
		"proxy to a node":                   {aNode + "/proxy/x", nil, toKubelet},
		"proxy to a node, upgraded":         {aNode + "/proxy/x", websocket, toKubelet},
		"proxy to a port of a node":         {"/api/v1/nodes/https:node-1:9/proxy/x", nil, "proxy " + nodeAddress + ":9"},
		"proxy to a pod":                    {"/api/v1/namespaces/team/pods/https:web:443/proxy/x", nil, toPod},
		"proxy to a pod, plain":             {"/api/v1/namespaces/team/pods/web:9/proxy/x", nil, "proxy " + podAddress + ":9"},
		"proxy to a pod, upgraded":          {"/api/v1/namespaces/team/pods/https:web:443/proxy/x", websocket, toPod},
		"proxy to a pod, upgraded to SPDY":  {"/api/v1/namespaces/team/pods/https:web:443/proxy/x", spdy, toPod},
		"proxy to a pod, plain, upgraded":   {"/api/v1/namespaces/team/pods/web:9/proxy/x", websocket, "proxy " + podAddress + ":9"},
		"proxy to a Service":                {aService + "/https:web:443/proxy/x", nil, toPod},
		"proxy to a Service, upgraded":      {aService + "/https:web:443/proxy/x", websocket, toPod},
		"proxy to a Service that redirects": {aService + "/https:web:443/proxy/away", nil, toPod},
		"proxy to a pod that redirects":     {"/api/v1/namespaces/team/pods/https:web:443/proxy/away", nil, toPod},
		"upgrade that redirects":            {"/api/v1/namespaces/team/pods/https:web:443/proxy/away", websocket, toPod},
		"proxy to a node that redirects":    {aNode + "/proxy/away", nil, toKubelet},
		"exec that redirects":               {aPod + "/exec?command=away&stdout=1", spdy, toKubelet},
	}
}

type connection struct {
	path    string
	headers []string
	dialed  string
}

// TestConnectionsOfTenants: equal requests of two tenants reach the servers of
// each, which have equal addresses, with the certificate of each.
func TestConnectionsOfTenants(t *testing.T) {
	c, _ := newChain(t)
	nodes := []*node{newNode(t, c, "red"), newNode(t, c, "blue")}
	for name, each := range connecting() {
		t.Run(name, func(t *testing.T) {
			for range 2 { // again, over the connections that were kept
				for _, n := range nodes {
					g := NewWithT(t)
					status, body := n.request(t, each.path, each.headers...)
					switch {
					case strings.Contains(name, "redirects") || strings.HasSuffix(each.dialed, ":9"):
						g.Expect(body).NotTo(ContainSubstring(" saw "))
					case each.dialed == toKubelet:
						g.Expect(body).To(HavePrefix(n.name+"'s kubelet saw "+n.name+" apiserver"), "%d", status)
					default:
						g.Expect(body).To(HavePrefix(n.name+"'s pod saw no certificate"), "%d", status)
					}
					for _, dialed := range n.network.take() {
						g.Expect(dialed).To(Equal(each.dialed))
					}
				}
			}
		})
	}
}

// TestConnectionsAreDialed: what the network refuses is not connected.
// Upstream dials by itself when it does not find the dialer of a transport.
func TestConnectionsAreDialed(t *testing.T) {
	c, _ := newChain(t)
	n := newNode(t, c, "red")
	n.network.to = nil
	more := map[string]connection{
		"exec, translated":         {aPod + "/exec?command=x&stdout=1", protocol("v5.channel.k8s.io"), toKubelet},
		"attach, translated":       {aPod + "/attach?stdout=1", protocol("v5.channel.k8s.io"), toKubelet},
		"port-forward, translated": {aPod + "/portforward", protocol("SPDY/3.1+portforward.k8s.io"), toKubelet},
	}
	maps.Copy(more, connecting())
	for name, each := range more {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, body := n.request(t, each.path, each.headers...)
			g.Expect(n.network.take()).To(ConsistOf(each.dialed))
			if status != http.StatusSwitchingProtocols { // the error is in a frame
				g.Expect(status).To(BeNumerically(">=", http.StatusInternalServerError))
				g.Expect(body).To(ContainSubstring("not allowed"))
			}
			g.Expect(n.kubelet.connections() + n.pod.connections()).To(BeZero())
		})
	}
}

// TestConnectionsEnd: the connections of a removed tenant are closed, those of
// another are kept.
func TestConnectionsEnd(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, blue := newNode(t, c, "red"), newNode(t, c, "blue")
	for _, n := range []*node{red, blue} {
		for range 3 {
			_, body := n.request(t, aPod+"/log")
			g.Expect(body).To(ContainSubstring("HTTP/2.0"))
			_, body = n.request(t, aService+"/https:web:443/proxy/x")
			g.Expect(body).To(ContainSubstring("HTTP/2.0"))
		}
		g.Expect(n.network.take()).To(ConsistOf(toKubelet, toPod)) // once each
	}
	c.Remove(red.tenant)
	g.Eventually(func() int { return red.kubelet.connections() + red.pod.connections() }, later).Should(BeZero())
	_, body := blue.request(t, aPod+"/log")
	g.Expect(body).To(HavePrefix("blue's kubelet saw blue apiserver"))
	g.Expect(blue.network.take()).To(BeEmpty())
}

// TestKubeletsAreVerified: a tenant's authority decides which kubelets are
// trusted, and the hostname is used if a proxy answers for all.
func TestKubeletsAreVerified(t *testing.T) {
	c, _ := newChain(t)
	n := newNode(t, c, "red")
	other, err := pki.NewAuthority("other", time.Hour, time.Now())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, tc := range map[string]struct {
		change func(*chain.Spec)
		want   string
		dialed string
	}{
		"another authority": {func(s *chain.Spec) { s.KubeletCA = other.CertPEM }, "certificate signed by unknown authority", toKubelet},
		"no authority":      {func(s *chain.Spec) { s.KubeletCA = nil }, "red's kubelet saw", toKubelet},
		"bad authority":     {func(s *chain.Spec) { s.KubeletCA = []byte("PEM") }, "it has no certificate", ""},
		"no certificate":    {func(s *chain.Spec) { s.KubeletClient = nil }, `"code":500`, toKubelet},
		"bad certificate": {
			func(s *chain.Spec) { s.KubeletClient = func() (_, _ []byte) { return nil, nil } }, "failed to find any PEM data", toKubelet,
		},
		"no network":  {func(s *chain.Spec) { s.Network = nil }, "not allowed", ""},
		"by hostname": {func(s *chain.Spec) { s.KubeletsByHostname = true }, "red's kubelet saw", "kubelet node-1:10250"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := n.spec
			tc.change(&spec)
			c.Remove(n.tenant)
			n.serve(t, c, spec)
			n.network.to["node-1:10250"] = n.kubelet.Listener.Addr().String()
			client, err := kubernetes.NewForConfig(n.tenant.Config())
			g.Expect(err).NotTo(HaveOccurred())
			found, err := client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			found.Status.Addresses = []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeAddress}, {Type: corev1.NodeHostName, Address: "node-1"},
			}
			g.Expect(client.CoreV1().Nodes().UpdateStatus(t.Context(), found, metav1.UpdateOptions{})).Error().NotTo(HaveOccurred())
			n.network.take()
			_, body := n.request(t, aPod+"/log")
			g.Expect(body).To(ContainSubstring(tc.want))
			if tc.dialed != "" {
				g.Expect(n.network.take()).To(HaveEach(tc.dialed))
			} else {
				g.Expect(n.network.take()).To(BeEmpty())
			}
		})
	}
}

// TestComponentStatuses: the machine of the apiserver has no components of a
// tenant, and discovery does not show that there could be any.
func TestComponentStatuses(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, client := add(t, c, "red")
	for _, legacy := range []bool{false, true} {
		g.Expect(names(resourcesOf(t, red, legacy)["v1"])).NotTo(ContainElement("componentstatuses"))
	}
	_, err := client.CoreV1().ComponentStatuses().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(Satisfy(apierrors.IsNotFound))
	_, err = client.CoreV1().ComponentStatuses().Get(t.Context(), "etcd-0", metav1.GetOptions{})
	g.Expect(err).To(Satisfy(apierrors.IsNotFound))
}
