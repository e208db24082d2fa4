// Package identity finds out which tenant's CA or key has signed the credentials
// of a request. Names in credentials say nothing: a tenant's admin chooses them.
package identity

import (
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
)

// Caller is who sends a request.
type Caller struct {
	resolve.Identity

	// User is the user of a verified client certificate; nil for other
	// credentials, which the tenant's apiserver verifies.
	User user.Info
	// Token is the bearer token; empty without one.
	Token string
}

// ErrCertificate is a client certificate that no tenant's CA has signed, or that
// is not valid now.
var ErrCertificate = errors.New("the client certificate is expired, or no CA of a tenant has signed it: " +
	"use one of the tenant, or a token if its control plane is External")

// Finder finds tenants by what signs credentials.
type Finder interface {
	// ByAuthority returns the tenant whose CA has the key id; nil if none has.
	ByAuthority(id []byte) *tenants.Tenant
	// ByKeyID returns the tenant whose tokens name the key; nil if none has.
	ByKeyID(id string) *tenants.Tenant
	// ByKey returns the tenant with a cluster key; nil for none.
	ByKey(key string) *tenants.Tenant
}

// Of returns the caller of a request. It is called for each request: a
// certificate expires, and a CA is replaced, while a connection is open.
func Of(r *http.Request, finder Finder, now time.Time) (Caller, error) {
	var errCertificate error
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		var caller Caller
		caller, errCertificate = connectionOf(r.Context()).byCertificate(r.TLS.PeerCertificates, finder, now)
		if errCertificate == nil {
			return caller, nil
		}
	}
	token, err := tokenOf(r.Header)
	switch {
	case err != nil:
		return Caller{}, err
	case token != "":
		return Caller{Identity: resolve.Identity{Of: signerOf(token, finder), Credentials: true}, Token: token}, nil
	case errCertificate != nil:
		return Caller{}, errCertificate
	}
	return Caller{Identity: resolve.Identity{Credentials: r.Header.Get("Authorization") != ""}}, nil
}

// verify verifies a certificate by the CA of a tenant. It returns the
// certificates that it is verified by, too.
func verify(chain []*x509.Certificate, t *tenants.Tenant, now time.Time) (Caller, []*x509.Certificate, error) {
	intermediates := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		intermediates.AddCert(certificate)
	}
	verified, err := chain[0].Verify(x509.VerifyOptions{
		Roots: t.Roots(), Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return Caller{}, nil, ErrCertificate
	}
	response, ok, err := requestx509.CommonNameUserConversion.User(verified[0])
	if err != nil || !ok || !fitsHeaders(response.User) {
		return Caller{}, nil, ErrCertificate
	}
	caller := Caller{Identity: resolve.Identity{Of: t.Key, Credentials: true}, User: response.User}
	if t.Key == resolve.System {
		caller.SuperUser = Authenticated(response.User)
	}
	return caller, verified[0], nil
}

// Authenticated returns a user with the group of all users, to which an apiserver
// adds those of certificates, as it does those of tokens.
func Authenticated(who user.Info) user.Info {
	return &user.DefaultInfo{Name: who.GetName(), Groups: append(slices.Clone(who.GetGroups()), user.AllAuthenticated)}
}

// fitsHeaders reports whether an apiserver reads the same names in headers as in
// the certificate: spaces around a value are lost, so that " system:masters"
// would become another group.
func fitsHeaders(who user.Info) bool {
	for _, name := range append([]string{who.GetName()}, who.GetGroups()...) {
		if name == "" || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
			return false
		}
	}
	return true
}

// issuerOf returns the tenant whose CA has signed a certificate of the chain.
func issuerOf(chain []*x509.Certificate, finder Finder) *tenants.Tenant {
	for _, certificate := range chain {
		if t := finder.ByAuthority(certificate.AuthorityKeyId); t != nil {
			return t
		}
	}
	return nil
}
