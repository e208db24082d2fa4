package hosted

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/keyutil"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// identityTimeout limits how long keys are read for a connection.
const identityTimeout = 5 * time.Second

// identity is what the host needs of a control plane that sleeps to recognize
// its clients. It is read for each connection, so that a control plane that
// sleeps takes no memory for it.
type identity struct {
	config  *tls.Config
	clients authenticator.Request
}

// identities reads the identities of control planes from a keyring.
type identities struct{ keyring Keyring }

// of reads the identity of the control plane with a server name.
func (i identities) of(ctx context.Context, serverName string) (*identity, error) {
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	keys, err := i.keyring.Open(ctx, strings.TrimSuffix(serverName, serverNameSuffix))
	if err != nil {
		return nil, err
	}
	return readIdentity(keys)
}

// readIdentity reads the identity of a control plane from its keys.
func readIdentity(keys Keys) (*identity, error) {
	authority, err := keys.Read(authorityFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	authority, _ = splitPEM(authority)
	server, err := keys.Read(servingFile)
	if err != nil {
		return nil, fmt.Errorf("read the serving certificate: %w", err)
	}
	options := x509.DefaultVerifyOptions()
	certificate := func() (cert, key []byte) { return splitPEM(server) }
	options.Roots = chain.TLSConfig(nil, authority).ClientCAs
	tokens := signedTokens{keys}
	clients := []authenticator.Request{
		x509.New(options, x509.CommonNameUserConversion), bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens),
	}
	gateway, err := keys.Read(gatewayCAFile)
	if errors.Is(err, fs.ErrNotExist) { // it last ran in an older version
		return &identity{config: chain.TLSConfig(certificate, authority), clients: union.New(clients...)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the gateway CA: %w", err)
	}
	gateway, _ = splitPEM(gateway)
	users, err := chain.GatewayUsers(gateway)
	if err != nil {
		return nil, err
	}
	return &identity{
		config: chain.TLSConfig(certificate, authority, gateway), clients: union.New(append([]authenticator.Request{users}, clients...)...),
	}, nil
}

// authenticate returns an error for a request without credentials that the
// control plane has issued. It does not know which of them have been revoked:
// the control plane authenticates the request again when it is awake.
func (i *identity) authenticate(r *http.Request) error {
	_, ok, err := i.clients.AuthenticateRequest(r.Clone(r.Context())) // which removes the token
	switch {
	case ok:
		return nil
	case err != nil:
		return apierrors.NewUnauthorized("Unauthorized")
	}
	return apierrors.NewServiceUnavailable("the control plane sleeps, and only requests with credentials wake it")
}

// signedTokens authenticates service account tokens by their signature, expiry
// and audience.
type signedTokens struct{ keys Keys }

// AuthenticateToken implements authenticator.Token.
func (s signedTokens) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	signed, err := jwt.ParseSigned(token)
	if err != nil {
		return nil, false, nil //nolint:nilerr // it is another kind of token
	}
	data, err := s.keys.Read(verifyingKeyFile)
	if err != nil {
		return nil, false, fmt.Errorf("read the key of tokens: %w", err)
	}
	keys, err := keyutil.ParsePublicKeysPEM(data)
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", s.keys.Locate(verifyingKeyFile), err)
	}
	var claims jwt.Claims
	if err := signed.Claims(keys[0], &claims); err != nil {
		return nil, false, fmt.Errorf("verify a token: %w", err)
	}
	if err := claims.Validate(jwt.Expected{Time: time.Now()}); err != nil {
		return nil, false, fmt.Errorf("verify a token: %w", err)
	}
	if len(claims.Audience) > 0 && !slices.ContainsFunc(claims.Audience, isApiserver) { // tokens of old Secrets have none
		return nil, false, fmt.Errorf("verify a token: it is for %s", claims.Audience)
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: claims.Subject}}, true, nil
}

// isApiserver reports whether an audience is that of an apiserver. The control
// plane compares the domain when it is awake.
func isApiserver(audience string) bool { return strings.HasPrefix(audience, chain.AudiencePrefix) }
