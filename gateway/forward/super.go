package forward

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
)

// NewSuperWay makes a way to the super cluster. It forwards tokens of callers
// over connections without credentials. If it impersonates, it forwards users of
// client certificates as the gateway's own user, who impersonates them.
func NewSuperWay(config *rest.Config, impersonates bool) (*Way, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the super cluster: %w", err)
	}
	w := newWay(server)
	anonymous, err := rest.TLSConfigFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("read the CA of the super cluster: %w", err)
	}
	w.plain = w.newTransports(anonymous)
	if !impersonates {
		return w, nil
	}
	own, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the gateway: %w", err)
	}
	w.stamped, w.impersonates = w.newTransports(own), true
	for _, each := range []*http.RoundTripper{&w.stamped.http2, &w.stamped.http1} {
		if *each, err = rest.HTTPWrappersForConfig(config, *each); err != nil {
			return nil, fmt.Errorf("read the credentials of the gateway: %w", err)
		}
	}
	return w, nil
}

// impersonationPrefix begins the headers by which a user acts as another one.
const impersonationPrefix = "Impersonate-"

// reservedPrefix begins the names of Kubernetes' own users and groups.
const reservedPrefix = "system:"

var (
	// ErrReserved is a user whom the gateway does not impersonate: the members of
	// system:masters are above RBAC, and nodes and components are no users.
	ErrReserved = errors.New("the gateway impersonates no user or group whose name begins with " + reservedPrefix +
		": use a token, or the address of the super cluster")
	// ErrActsAsOther is a request in which the user of a client certificate acts
	// as another user. The headers for it are those of the gateway.
	ErrActsAsOther = errors.New("a client certificate cannot be used with --as at the super cluster through the gateway: " +
		"use a token, or the address of the super cluster")
)

// checkImpersonation returns an error if the gateway may not impersonate a user
// for a request with these headers.
func checkImpersonation(header http.Header, who user.Info) error {
	for key := range header {
		if isBelow(key, impersonationPrefix) {
			return ErrActsAsOther
		}
	}
	for _, name := range append([]string{who.GetName()}, who.GetGroups()...) {
		if strings.HasPrefix(name, reservedPrefix) {
			return ErrReserved
		}
	}
	return nil
}

// impersonate adds the headers by which the gateway acts as a user, with its own
// credentials.
func impersonate(header http.Header, who user.Info) {
	header.Set(impersonationPrefix+"User", who.GetName())
	header[impersonationPrefix+"Group"] = append([]string(nil), who.GetGroups()...)
}
