package hosted

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// sleepingPlane is a control plane that sleeps at a router. Once woken, it runs
// with a handler of the test.
type sleepingPlane struct {
	*routed

	creds *credentials
	woken chan struct{}
	inlet *inlet
}

func startSleeping(t *testing.T, handler http.Handler) *sleepingPlane {
	t.Helper()
	g := NewWithT(t)
	in, err := newInlet(nil, PortRange{})
	g.Expect(err).NotTo(HaveOccurred())
	in.serves.Store(&handler)
	p := &sleepingPlane{routed: startRouter(t, ""), woken: make(chan struct{}, 100), inlet: in}
	p.creds = load(t, filepath.Join(p.dir, "red", "pki"), "red.vc.internal")
	p.sleepers.add("red.vc.internal", func() { p.woken <- struct{}{} })
	server := &http.Server{Handler: handler, TLSConfig: chain.TLSConfig(p.creds.CurrentCertKeyContent, p.creds.authority.CertPEM)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(tls.NewListener(in, server.TLSConfig)) }) // until it is closed
	t.Cleanup(func() {                                                             // before the router stops
		_ = server.Close()
		serving.Wait()
		in.shut()
	})
	return p
}

// run wakes the control plane.
func (p *sleepingPlane) run() {
	p.add("red", p.inlet)
	p.sleepers.remove("red.vc.internal")
}

// client returns a client with a connection of its own.
func (p *sleepingPlane) client(t *testing.T, credentials func(*rest.Config)) *http.Client {
	t.Helper()
	config := &rest.Config{
		TLSClientConfig: rest.TLSClientConfig{ServerName: "red.vc.internal", CAData: p.creds.authority.CertPEM},
		Dial:            (&net.Dialer{}).DialContext, // without it, transports are shared
	}
	credentials(config)
	client, err := rest.HTTPClientFor(config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// answer is what a client receives.
type answer struct {
	Code int
	Body string
	Err  error
}

func (p *sleepingPlane) get(ctx context.Context, client *http.Client) answer {
	return p.getAt(ctx, client, p.listener.Addr().String())
}

func (*sleepingPlane) getAt(ctx context.Context, client *http.Client, address string) answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/version", nil)
	if err != nil {
		return answer{Err: err}
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{Err: err}
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	return answer{response.StatusCode, string(body), err}
}

func nothing(*rest.Config) {}

func certificateOf(c *credentials) func(*rest.Config) {
	return func(config *rest.Config) { config.CertData, config.KeyData = c.admin.CertPEM, c.admin.KeyPEM }
}

func bearer(token string) func(*rest.Config) {
	return func(config *rest.Config) { config.BearerToken = token }
}

// websocketToken sends a token as a browser does.
func websocketToken(token string) func(*rest.Config) {
	return func(config *rest.Config) {
		config.WrapTransport = func(inner http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", "websocket")
				protocol := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
				r.Header.Set("Sec-WebSocket-Protocol", protocol+", v5.channel.k8s.io")
				return inner.RoundTrip(r)
			})
		}
		config.NextProtos = []string{"http/1.1"}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tokenBy returns a token that is signed with a key, as of an issuer.
func tokenBy(t *testing.T, algorithm jose.SignatureAlgorithm, key any, change func(*jwt.Claims)) string {
	t.Helper()
	g := NewWithT(t)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	claims := jwt.Claims{
		Issuer: "https://issuer", Audience: jwt.Audience{chain.AudiencePrefix + "cluster.local", "other"}, Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour)),
		Subject: "system:serviceaccount:team:robot",
	}
	change(&claims)
	token, err := jwt.Signed(signer).Claims(claims).CompactSerialize()
	g.Expect(err).NotTo(HaveOccurred())
	return token
}

func signingKeyOf(t *testing.T, c *credentials) any {
	t.Helper()
	key, err := keyutil.ParsePrivateKeyPEM(c.signingKey)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return key
}

func unchanged(*jwt.Claims) {}

// TestCredentialsWake: a control plane wakes for a request with credentials that
// it has issued, and for no other.
func TestCredentialsWake(t *testing.T) {
	p := startSleeping(t, http.NotFoundHandler())
	blue := load(t, filepath.Join(p.dir, "blue", "pki"), "blue.vc.internal")
	key, other := signingKeyOf(t, p.creds), signingKeyOf(t, blue)
	public, err := verifyingKeyPEM(p.creds.signingKey)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	honest := tokenBy(t, jose.ES256, key, unchanged)
	for name, test := range map[string]struct {
		credentials func(*rest.Config)
		want        int // 0 if it wakes
	}{
		"none":                             {nothing, http.StatusServiceUnavailable},
		"certificate":                      {certificateOf(p.creds), 0},
		"certificate of another one":       {certificateOf(blue), http.StatusUnauthorized},
		"token":                            {bearer(honest), 0},
		"token of a browser":               {websocketToken(honest), 0},
		"certificate of another and token": {both(certificateOf(blue), bearer(honest)), 0},
		"token of an old Secret": {bearer(tokenBy(t, jose.ES256, key, func(c *jwt.Claims) {
			c.Issuer, c.Audience, c.Expiry = "kubernetes/serviceaccount", nil, nil
		})), 0},
		"token of another one":            {bearer(tokenBy(t, jose.ES256, other, unchanged)), http.StatusUnauthorized},
		"token of another, of a browser":  {websocketToken(tokenBy(t, jose.ES256, other, unchanged)), http.StatusUnauthorized},
		"token by the public key":         {bearer(tokenBy(t, jose.HS256, public, unchanged)), http.StatusUnauthorized},
		"token without its signature":     {bearer(honest[:len(honest)-20]), http.StatusUnauthorized},
		"token of no shape":               {bearer("admin"), http.StatusUnauthorized},
		"token for something else":        {bearer(tokenBy(t, jose.ES256, key, func(c *jwt.Claims) { c.Audience = jwt.Audience{"vault"} })), http.StatusUnauthorized},
		"token for who knows the issuer":  {bearer(tokenBy(t, jose.ES256, key, func(c *jwt.Claims) { c.Audience = jwt.Audience{c.Issuer} })), http.StatusUnauthorized},
		"token that has expired":          {bearer(tokenBy(t, jose.ES256, key, func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(time.Now().Add(-time.Hour)) })), http.StatusUnauthorized},
		"password":                        {func(c *rest.Config) { c.Username, c.Password = "admin", "admin" }, http.StatusServiceUnavailable},
		"certificate that serves":         {servingCertificateOf(p.creds), http.StatusUnauthorized},
		"front proxy, which no client is": {func(c *rest.Config) { c.WrapTransport = remoteUser }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan answer, 1)
			client := p.client(t, test.credentials)
			go func() { answered <- p.get(ctx, client) }()
			if test.want != 0 {
				g.Eventually(answered, "20s").Should(Receive(HaveField("Code", test.want)))
				g.Expect(p.woken).To(BeEmpty())
				g.Expect(p.waiting()).To(BeZero())
				return
			}
			g.Eventually(p.woken, "20s").Should(Receive())
			g.Expect(answered).To(BeEmpty(), "held")
			cancel()
			g.Eventually(p.waiting, "20s").Should(BeZero())
		})
	}
}

func (p *sleepingPlane) waiting() int { return p.sleepers.waiting() }

func both(a, b func(*rest.Config)) func(*rest.Config) {
	return func(c *rest.Config) { a(c); b(c) }
}

func servingCertificateOf(c *credentials) func(*rest.Config) {
	return func(config *rest.Config) { config.CertData, config.KeyData = c.server.CertPEM, c.server.KeyPEM }
}

func remoteUser(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("X-Remote-User", "admin")
		r.Header.Set("X-Remote-Group", "system:masters")
		return inner.RoundTrip(r)
	})
}

// TestAHeldConnectionIsPassed: all requests of a connection that wakes a control
// plane are served by it, as requests of one connection, which is then closed.
func TestAHeldConnectionIsPassed(t *testing.T) {
	g := NewWithT(t)
	const requests = heldPerName / 2
	conns := make(chan *inletConn, 2*requests)
	p := startSleeping(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns <- connectionOf(r.Context())
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	client := p.client(t, certificateOf(p.creds))
	answers := make(chan answer, requests)
	var sent sync.WaitGroup
	defer sent.Wait()
	for range requests {
		sent.Go(func() { answers <- p.get(t.Context(), client) })
	}
	g.Eventually(p.woken, "20s").Should(Receive())
	p.run()
	for range requests {
		g.Eventually(answers, "20s").Should(Receive(Equal(answer{Code: http.StatusOK, Body: "admin"})))
	}
	first := <-conns
	seen := map[*inletConn]bool{first: true}
	for range requests - 1 {
		seen[<-conns] = true
	}
	g.Expect(seen).NotTo(HaveKey(BeNil()))
	g.Expect(len(seen)).To(BeNumerically("<", requests/4), "clients have few connections")
	g.Eventually(func() bool { return slices.Contains(p.inlet.connections(), first) }, "20s").Should(BeFalse(), "it is closed")
	g.Expect(p.woken).To(BeEmpty(), "woken once")
}

// TestAHeldConnectionEndsWithItsControlPlane: a watch that has woken a control
// plane ends when that stops.
func TestAHeldConnectionEndsWithItsControlPlane(t *testing.T) {
	g := NewWithT(t)
	ended := make(chan struct{})
	p := startSleeping(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	answered := make(chan answer, 1)
	client := p.client(t, certificateOf(p.creds))
	go func() { answered <- p.get(t.Context(), client) }()
	g.Eventually(p.woken, "20s").Should(Receive())
	p.run()
	g.Eventually(p.inlet.connections, "20s").Should(HaveLen(1))
	g.Consistently(answered, "50ms").ShouldNot(Receive())
	g.Expect(p.inlet.Close()).To(Succeed())
	g.Eventually(answered, "20s").Should(Receive(HaveField("Err", HaveOccurred())))
	g.Eventually(ended, "20s").Should(BeClosed())
	g.Expect(p.hellos.Count()).To(BeZero())
}

// TestAFloodWithoutCredentials: connections of clients that prove nothing wake
// no control plane, take no place of those that do, and end.
func TestAFloodWithoutCredentials(t *testing.T) {
	g := NewWithT(t)
	p := startSleeping(t, http.NotFoundHandler())
	for range floodSize + heldPerName {
		conn := tls.Client(p.dial(t, func(net.Conn) {}), &tls.Config{ServerName: "red.vc.internal", InsecureSkipVerify: true})
		g.Expect(conn.HandshakeContext(t.Context())).To(Succeed())
	}
	g.Eventually(p.hellos.Count, "20s").Should(Equal(floodSize))
	g.Expect(p.waiting()).To(BeZero())
	g.Expect(p.woken).To(BeEmpty())
	answered := make(chan answer, 1)
	client := p.client(t, certificateOf(p.creds))
	go func() { answered <- p.get(t.Context(), client) }()
	g.Eventually(p.woken, "20s").Should(Receive())
	p.run()
	g.Eventually(answered, "20s").Should(Receive(HaveField("Code", http.StatusNotFound)))
	g.Eventually(p.hellos.Count, 2*proofTimeout).Should(BeZero(), "silent connections end")
}

// TestAControlPlaneWithoutIdentity: one that has never run has issued no
// credentials.
func TestAControlPlaneWithoutIdentity(t *testing.T) {
	g := NewWithT(t)
	p := startSleeping(t, http.NotFoundHandler())
	p.sleepers.add("blue.vc.internal", func() { p.woken <- struct{}{} })
	client := p.client(t, func(c *rest.Config) {
		certificateOf(p.creds)(c)
		c.ServerName = "blue.vc.internal"
	})
	g.Expect(p.get(t.Context(), client).Err).To(HaveOccurred())
	g.Expect(p.woken).To(BeEmpty())
	g.Expect(p.hellos.Count()).To(BeZero())
}
