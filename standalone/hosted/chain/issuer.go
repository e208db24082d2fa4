package chain

import (
	"cmp"
	"context"
	"crypto"
	"fmt"
	"net/http"
	"slices"

	"github.com/emicklei/go-restful/v3"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/routes"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// AudiencePrefix begins the audience of tokens for an apiserver. The domain of
// the cluster follows.
const AudiencePrefix = "https://kubernetes.default.svc."

// audience returns the audience of tokens for the apiserver of the tenant, which
// does not depend on their issuer.
func (s Spec) audience() string { return AudiencePrefix + s.ClusterDomain }

func (s Spec) audiences() authenticator.Audiences { return authenticator.Audiences{s.audience()} }

// issuer returns the issuer of the tenant's service account tokens.
func (s Spec) issuer() string { return cmp.Or(s.Issuer, s.audience()) }

// issuers returns those of tokens that are valid: the default one of tokens from
// before a change, too.
func (s Spec) issuers() []string { return slices.Compact([]string{s.issuer(), s.audience()}) }

// issuer signs the service account tokens of a tenant, and verifies them.
type issuer struct {
	serviceaccount.TokenGenerator

	keys serviceaccount.PublicKeysGetter
}

func newIssuer(spec Spec) (*issuer, error) {
	private, err := keyutil.ParsePrivateKeyPEM(spec.SigningKey)
	if err != nil {
		return nil, fmt.Errorf("read the signing key of tenant %q: %w", spec.Name, err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the signing key of tenant %q cannot sign", spec.Name)
	}
	generator, err := serviceaccount.JWTTokenGenerator(spec.issuer(), private)
	if err != nil {
		return nil, fmt.Errorf("create the issuer of tenant %q: %w", spec.Name, err)
	}
	keys, err := serviceaccount.StaticPublicKeysGetter([]any{signer.Public()})
	if err != nil {
		return nil, fmt.Errorf("publish the keys of tenant %q: %w", spec.Name, err)
	}
	return &issuer{TokenGenerator: generator, keys: keys}, nil
}

// issuers sign each token as the tenant of its request.
type issuers struct{ chain *Chain }

// GenerateToken implements serviceaccount.TokenGenerator.
func (i issuers) GenerateToken(ctx context.Context, claims *jwt.Claims, private any) (string, error) {
	t, err := i.chain.tenant(ctx)
	if err != nil {
		return "", err
	}
	of, err := t.issuer.get()
	if err != nil {
		return "", err
	}
	return of.GenerateToken(ctx, claims, private)
}

// newOpenID returns the handler of the documents from which others learn how
// to verify tokens of the tenant. They name the address of the issuer, which
// pods of the tenant resolve.
func newOpenID(t *Tenant) (http.Handler, error) {
	of, err := t.issuer.get()
	if err != nil {
		return nil, err
	}
	documents, err := OpenID(t.spec.issuer(), of.keys)
	if err != nil {
		return nil, fmt.Errorf("describe the issuer of tenant %q: %w", t.spec.Name, err)
	}
	container := restful.NewContainer()
	routes.NewOpenIDMetadataServer(documents).Install(container)
	return container, nil
}

// OpenID returns the documents from which others learn how to verify tokens of an
// issuer.
func OpenID(issuer string, keys serviceaccount.PublicKeysGetter) (serviceaccount.OpenIDMetadataProvider, error) {
	return serviceaccount.NewOpenIDMetadataProvider(issuer, issuer+serviceaccount.JWKSPath, "", keys)
}

// installOpenID installs the routes of upstream. The handler of a tenant
// takes the place of their functions.
func (c *Chain) installOpenID(container *restful.Container) {
	upstream := restful.NewContainer()
	routes.NewOpenIDMetadataServer(nil).Install(upstream)
	for _, service := range upstream.RegisteredWebServices() {
		container.Add(service.Filter(c.serveOpenID))
	}
}

// serveOpenID is a filter that answers all requests.
func (c *Chain) serveOpenID(request *restful.Request, response *restful.Response, _ *restful.FilterChain) {
	t, err := c.tenant(request.Request.Context())
	if err != nil {
		fail(response, request.Request, err)
		return
	}
	handler, err := t.openID.get()
	if err != nil {
		fail(response, request.Request, err)
		return
	}
	handler.ServeHTTP(response.ResponseWriter, request.Request)
}
