package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// world is an index of the tenant red-key, with its CA.
type world struct {
	index     *tenants.Index
	authority pki.Authority
	keyID     string
}

func newWorld(t *testing.T) world {
	t.Helper()
	authority := newAuthority(t)
	_, public, err := pki.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	red, err := tenants.New("red-key", gatewayaccess.Access{Server: "https://10.0.0.1", ClientCA: authority.CertPEM, TokenKeys: public}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(red.Way.Close)
	index := tenants.NewIndex(types.NamespacedName{})
	index.Set(types.NamespacedName{Name: "red"}, red)
	light, err := tenants.New("light-key", gatewayaccess.Access{Token: []byte("a")}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(light.Way.Close)
	light.Converted = http.NotFoundHandler()
	index.Set(types.NamespacedName{Name: "light"}, light)
	return world{index, authority, red.KeyIDs()[0]}
}

func newAuthority(t *testing.T) pki.Authority {
	t.Helper()
	authority, err := pki.NewAuthority("kubernetes", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func client(t *testing.T, of pki.Authority, name string, groups ...string) []*x509.Certificate {
	t.Helper()
	pair, err := of.Client(name, groups, 30*time.Minute, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := cert.ParseCertsPEM(pair.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	return certificates
}

func token(keyID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"`+keyID+`"}`)) + ".e30.c2ln"
}

// tokenFor returns a token with the audiences, as JSON, and the kid.
func tokenFor(audiences, keyID string) string {
	head, _, _ := strings.Cut(token(keyID), ".")
	return head + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":`+audiences+`}`)) + ".c2ln"
}

func TestOf(t *testing.T) {
	w := newWorld(t)
	ours, strangers := client(t, w.authority, "jane", "a"), client(t, newAuthority(t), "jane", "a")
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	red := resolve.Identity{Of: "red-key", Credentials: true}
	tests := map[string]struct {
		chain  []*x509.Certificate
		header http.Header
		later  time.Duration
		want   resolve.Identity
		user   string
		fails  bool
	}{
		"nothing":                        {},
		"a certificate":                  {chain: ours, want: red, user: "jane"},
		"one that has expired":           {chain: ours, later: 40 * time.Minute, fails: true},
		"one that is not valid yet":      {chain: ours, later: -time.Hour, fails: true},
		"one of a stranger":              {chain: strangers, fails: true},
		"a name with spaces":             {chain: client(t, w.authority, " jane"), fails: true},
		"a group with spaces":            {chain: client(t, w.authority, "jane", "system:masters "), fails: true},
		"a group with a line break":      {chain: client(t, w.authority, "jane", "a\nb"), fails: true},
		"a token":                        {header: bearer(token(w.keyID)), want: red},
		"one in another spelling":        {header: http.Header{"Authorization": {"bEaReR  " + token(w.keyID)}}, want: red},
		"one of an unknown key":          {header: bearer(token("other")), want: resolve.Identity{Credentials: true}},
		"one for a converted tenant":     {header: bearer(tokenFor(`["a","converted.tenancy.x-k8s.io/light-key"]`, "super")), want: resolve.Identity{Of: "light-key", Credentials: true}},
		"one of a key, for another one":  {header: bearer(tokenFor(`["converted.tenancy.x-k8s.io/light-key"]`, w.keyID)), want: red},
		"one for a tenant's vault":       {header: bearer(tokenFor(`["converted.tenancy.x-k8s.io/light-key/vault"]`, "super")), want: resolve.Identity{Of: "light-key", Credentials: true}},
		"one for an unknown tenant":      {header: bearer(tokenFor(`["converted.tenancy.x-k8s.io/new-key"]`, "super")), want: resolve.Identity{Of: "new-key", Credentials: true}},
		"one for a hosted tenant":        {header: bearer(tokenFor(`["converted.tenancy.x-k8s.io/red-key"]`, "super")), want: resolve.Identity{Credentials: true}},
		"one for no tenant":              {header: bearer(tokenFor(`["converted.tenancy.x-k8s.io/"]`, "super")), want: resolve.Identity{Credentials: true}},
		"one with a text as audience":    {header: bearer(tokenFor(`"converted.tenancy.x-k8s.io/light-key"`, "super")), want: resolve.Identity{Credentials: true}},
		"one that is no JWT":             {header: bearer("abc"), want: resolve.Identity{Credentials: true}},
		"one with a broken head":         {header: bearer("e30x!.e30.x"), want: resolve.Identity{Credentials: true}},
		"two tokens":                     {header: http.Header{"Authorization": {"Bearer a", "Bearer b"}}, fails: true},
		"a certificate, and two tokens":  {chain: ours, header: http.Header{"Authorization": {"Bearer a", "Bearer b"}}, want: red, user: "jane"},
		"a password":                     {header: http.Header{"Authorization": {"Basic abc"}}, want: resolve.Identity{Credentials: true}},
		"certificate and token":          {chain: ours, header: bearer(token("other")), want: red, user: "jane"},
		"a stranger's, and a token":      {chain: strangers, header: bearer(token(w.keyID)), want: red},
		"an expired one, and a token":    {chain: ours, later: 40 * time.Minute, header: bearer(token(w.keyID)), want: red},
		"a token as a WebSocket's":       {header: http.Header{"Sec-Websocket-Protocol": {"v5.channel.k8s.io, base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token(w.keyID)))}}, want: red},
		"a WebSocket without a token":    {header: http.Header{"Sec-Websocket-Protocol": {"v5.channel.k8s.io"}}},
		"the certificate of the CA only": {chain: authorityOf(t, w.authority), fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.TLS = &tls.ConnectionState{PeerCertificates: tt.chain}
			maps.Copy(r.Header, tt.header)
			caller, err := Of(r, w.index, time.Now().Add(tt.later))
			if (err != nil) != tt.fails {
				t.Fatalf("got %v, want an error: %t", err, tt.fails)
			}
			if caller.Identity != tt.want {
				t.Errorf("got %+v, want %+v", caller.Identity, tt.want)
			}
			name := ""
			if caller.User != nil {
				name = caller.User.GetName()
			}
			if name != tt.user {
				t.Errorf("got user %q, want %q", name, tt.user)
			}
		})
	}
}

func authorityOf(t *testing.T, authority pki.Authority) []*x509.Certificate {
	t.Helper()
	certificates, err := cert.ParseCertsPEM(authority.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	return certificates
}
