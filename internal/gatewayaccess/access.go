// Package gatewayaccess has what a control plane hands to the gateway: how it is
// reached, how its users are recognized, and the certificate by which the
// gateway may say who they are. It is the data of a Secret.
package gatewayaccess

import (
	"bytes"
	"maps"
	"slices"
)

// User is the name in the certificate by which a control plane recognizes the
// gateway.
const User = "vc-gateway"

// Access is what the gateway needs of a control plane.
type Access struct {
	// Server is the URL of the apiserver.
	Server string
	// ServerName is the name in its serving certificate; empty for the host of
	// Server.
	ServerName string
	// CA verifies its serving certificate, in PEM; empty for the system's.
	CA []byte
	// ClientCA verifies the client certificates of its users, and TokenKeys are
	// the public keys of its service account tokens, in PEM. Without TokenKeys,
	// tokens are not recognized: the control plane may accept any.
	ClientCA, TokenKeys []byte
	// Certificate and Key are the gateway's, in PEM. The control plane takes the
	// user of a request with this certificate from its headers. Without them,
	// the gateway forwards no client certificates.
	Certificate, Key []byte
	// OpenIDConfiguration and KeySet are the documents of the issuer of its service
	// account tokens, in JSON, which the gateway serves to everyone; empty if the
	// issuer is not public.
	OpenIDConfiguration, KeySet []byte
	// Token is that of a service account of the super cluster as which the gateway
	// sends the converted requests of a tenant without a control plane. Server and CA
	// are the gateway's own then, and only the client CA is of use beside them.
	// ContinueKey are 32 random bytes, by which the
	// gateway seals the tokens to continue lists.
	Token, ContinueKey []byte
	// DNS is the address of the DNS of such a tenant; empty if it has none.
	DNS string
}

// The keys of a Secret with an Access.
const (
	serverKey      = "server"
	serverNameKey  = "tls-server-name"
	caKey          = "ca.crt"
	clientCAKey    = "client-ca.crt"
	tokenKeysKey   = "sa.pub"
	certificateKey = "tls.crt"
	keyKey         = "tls.key"
	openIDKey      = "openid-configuration"
	keySetKey      = "jwks"
	tokenKey       = "token"
	continueKey    = "continue-key"
	dnsKey         = "dns"
)

// Data returns the access as the data of a Secret, without what is empty.
func (a Access) Data() map[string][]byte {
	data := map[string][]byte{
		serverKey: []byte(a.Server), serverNameKey: []byte(a.ServerName), caKey: a.CA,
		clientCAKey: a.ClientCA, tokenKeysKey: a.TokenKeys, certificateKey: a.Certificate, keyKey: a.Key,
		openIDKey: a.OpenIDConfiguration, keySetKey: a.KeySet, tokenKey: a.Token, continueKey: a.ContinueKey, dnsKey: []byte(a.DNS),
	}
	maps.DeleteFunc(data, func(_ string, value []byte) bool { return len(value) == 0 })
	return data
}

// Read returns the access in the data of a Secret.
func Read(data map[string][]byte) Access {
	return Access{
		Server: string(data[serverKey]), ServerName: string(data[serverNameKey]), CA: data[caKey],
		ClientCA: data[clientCAKey], TokenKeys: data[tokenKeysKey], Certificate: data[certificateKey], Key: data[keyKey],
		OpenIDConfiguration: data[openIDKey], KeySet: data[keySetKey],
		Token: data[tokenKey], ContinueKey: data[continueKey], DNS: string(data[dnsKey]),
	}
}

// WithoutIssuer returns the access without the documents of a public issuer.
func (a Access) WithoutIssuer() Access {
	a.OpenIDConfiguration, a.KeySet = nil, nil
	return a
}

// IsConverted reports whether the gateway converts the requests of the tenant.
func (a Access) IsConverted() bool { return len(a.Token) > 0 }

// IsExternal reports whether the platform does not run the control plane: it
// trusts no certificate of the gateway. Its owner chooses its address and its
// server name.
func (a Access) IsExternal() bool { return len(a.Certificate) == 0 && !a.IsConverted() }

// Lasting returns the access without what changes under requests in flight: the
// documents of a public issuer, and a token, which is renewed.
func (a Access) Lasting() Access {
	a = a.WithoutIssuer()
	a.Token = nil
	return a
}

// Equal reports whether two are the same.
func (a Access) Equal(b Access) bool { return maps.EqualFunc(a.Data(), b.Data(), bytes.Equal) }

// Keys returns the keys of a Secret with an Access, sorted.
func Keys() []string {
	return slices.Sorted(slices.Values([]string{
		serverKey, serverNameKey, caKey, clientCAKey, tokenKeysKey, certificateKey, keyKey, openIDKey, keySetKey, tokenKey, continueKey, dnsKey,
	}))
}
