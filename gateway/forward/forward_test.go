package forward

import (
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

func TestStamp(t *testing.T) {
	sent := http.Header{
		"Authorization": {"Bearer token"}, "X-Remote-User": {"admin"}, "X-Remote-Extra-Scopes": {"all"}, "X_remote_group": {"system:masters"},
		"x-remote-uid": {"1"}, "Impersonate-User": {"jane"}, "X-Remotely": {"kept"},
	}
	tests := map[string]struct {
		who  user.Info
		want http.Header
	}{
		"a token": {nil, http.Header{
			"Authorization": {"Bearer token"}, "Impersonate-User": {"jane"}, "X-Remotely": {"kept"},
		}},
		"a certificate": {
			&user.DefaultInfo{Name: "jo", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.com/id": {"x"}}},
			http.Header{
				"Impersonate-User": {"jane"}, "X-Remotely": {"kept"}, "X-Remote-User": {"jo"}, "X-Remote-Group": {"a", "b"},
				"X-Remote-Extra-example.com%2Fid": {"x"},
			},
		},
		"a certificate without groups": {&user.DefaultInfo{Name: "jo"}, http.Header{
			"Impersonate-User": {"jane"}, "X-Remotely": {"kept"}, "X-Remote-User": {"jo"}, "X-Remote-Group": nil,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			header := sent.Clone()
			(&Way{}).stamp(header, tt.who)
			if diff := cmp.Diff(tt.want, header); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestImpersonation: the gateway acts as users of the super cluster, and not as
// those that are above RBAC, or that say they are someone else.
func TestImpersonation(t *testing.T) {
	for name, tt := range map[string]struct {
		sent http.Header
		who  user.DefaultInfo
		want error
	}{
		"a user":                     {http.Header{}, user.DefaultInfo{Name: "jo", Groups: []string{"a", "b"}}, nil},
		"an admin above RBAC":        {http.Header{}, user.DefaultInfo{Name: "jo", Groups: []string{"a", "system:masters"}}, ErrReserved},
		"a node":                     {http.Header{}, user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes"}}, ErrReserved},
		"a service account":          {http.Header{}, user.DefaultInfo{Name: "system:serviceaccount:a:b"}, ErrReserved},
		"--as":                       {http.Header{"Impersonate-User": {"jane"}}, user.DefaultInfo{Name: "jo"}, ErrActsAsOther},
		"--as-group, spelled so":     {http.Header{"impersonate_group": {"a"}}, user.DefaultInfo{Name: "jo"}, ErrActsAsOther},
		"--as-user-extra, of a name": {http.Header{"Impersonate-Extra-A": {"a"}}, user.DefaultInfo{Name: "jo"}, ErrActsAsOther},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Way{impersonates: true, stamped: &transports{}}
			if _, err := w.forUser(tt.sent, &tt.who); !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if tt.want != nil {
				return
			}
			header := http.Header{
				"Authorization": {"Bearer token"}, "X-Remote-User": {"admin"},
				"Sec-Websocket-Protocol": {"v5.channel.k8s.io, " + tokenProtocol + "dG9rZW4", "Base64URL" + tokenProtocol[len("base64url"):] + "dG9rZW4"},
			}
			w.stamp(header, &tt.who)
			want := http.Header{
				"Impersonate-User": {"jo"}, "Impersonate-Group": {"a", "b"}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"},
			}
			if diff := cmp.Diff(want, header); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKeepPrefix(t *testing.T) {
	for _, tt := range []struct{ prefix, location, want string }{
		{"/tenants/red", "/api/v1/x/", "/tenants/red/api/v1/x/"},
		{"/tenants/red", "//other.example.com/x", "//other.example.com/x"},
		{"/tenants/red", "https://other.example.com/x", "https://other.example.com/x"},
		{"/tenants/red", "", ""},
		{"", "/api/v1/x/", "/api/v1/x/"},
	} {
		response := &http.Response{Header: http.Header{}}
		if tt.location != "" {
			response.Header.Set("Location", tt.location)
		}
		if err := keepPrefix(response, tt.prefix); err != nil || response.Header.Get("Location") != tt.want {
			t.Errorf("%+v: got %q (%v)", tt, response.Header.Get("Location"), err)
		}
	}
}

func TestNewWay(t *testing.T) {
	for name, access := range map[string]gatewayaccess.Access{
		"no URL":                {},
		"a URL without TLS":     {Server: "http://10.0.0.1"},
		"a CA that is none":     {Server: "https://10.0.0.1", CA: []byte("ca")},
		"a broken certificate":  {Server: "https://10.0.0.1", Certificate: []byte("c"), Key: []byte("k")},
		"a URL without address": {Server: "https:///path"},
	} {
		if _, err := NewWay(access, nil); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	way, err := NewWay(gatewayaccess.Access{Server: "https://10.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if way.stamped != nil || way.address() != "10.0.0.1:443" {
		t.Errorf("stamped %v, address %s", way.stamped, way.address())
	}
	way.Close()
	way.Close() // as often as one likes
}

// TestParts: a client gets a part of a response before the next one, whether the
// response lasts or not.
func TestParts(t *testing.T) {
	received := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-received
		_, _ = io.WriteString(w, "second")
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	way, err := NewWay(gatewayaccess.Access{Server: server.URL, CA: ca}, (&net.Dialer{}).DialContext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Close)
	forwarder := NewForwarder()
	for _, lasts := range []bool{true, false} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			forwarder.Forward(w, r, Request{Way: way, Asked: resolve.Asked{Path: "/"}, Lasts: lasts, Failed: func(_ http.ResponseWriter, _ *http.Request, err error) {
				t.Error(err)
			}})
		}))
		t.Cleanup(front.Close)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len("first"))
		if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "first" {
			t.Errorf("lasts %t: got %q, %v", lasts, first, err)
		}
		received <- struct{}{}
		rest, err := io.ReadAll(response.Body)
		if err != nil || string(rest) != "second" {
			t.Errorf("lasts %t: got %q, %v", lasts, rest, err)
		}
		_ = response.Body.Close()
	}
}
