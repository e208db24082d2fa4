package chain

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
)

// authenticate returns the user of a request.
func (t *Tenant) authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	if found, ok := identityOf(r.Context()); ok {
		return &authenticator.Response{User: found}, true, nil
	}
	outside, err := t.authenticator.get()
	if err != nil {
		return nil, false, err
	}
	return outside.AuthenticateRequest(r)
}

// newAuthenticator returns upstream's authenticator, with the authorities and
// the issuer of a tenant. It caches tokens, and looks tokens up without the
// context of a request, so tenants never share one.
func (c *Chain) newAuthenticator(t *Tenant) (authenticator.Request, error) {
	of, err := t.issuer.get()
	if err != nil {
		return nil, err
	}
	config := c.authentication
	if config.ClientCAContentProvider, err = authority(t.spec.Name, "client CA", t.spec.ClientCA); err != nil {
		return nil, err
	}
	if config.RequestHeaderConfig, err = frontProxy(t.spec); err != nil {
		return nil, err
	}
	config.APIAudiences = t.spec.audiences()
	config.ServiceAccountIssuers = t.spec.issuers()
	config.ServiceAccountPublicKeysGetter = of.keys
	config.ServiceAccountTokenGetter = boundObjects{t.client.CoreV1()}
	config.SecretsWriter = t.client.CoreV1()
	config.AuthenticationConfig = nil           // nothing runs in the background without one
	request, _, _, _, err := config.New(t.life) //nolint:dogsled // the others configure OIDC and OpenAPI
	if err != nil {
		return nil, fmt.Errorf("create the authenticator of tenant %q: %w", t.spec.Name, err)
	}
	return request, nil
}

func authority(tenant, name string, pem []byte) (dynamiccertificates.CAContentProvider, error) {
	content, err := dynamiccertificates.NewStaticCAContent(name, pem)
	if err != nil {
		return nil, fmt.Errorf("read the %s of tenant %q: %w", name, tenant, err)
	}
	return content, nil
}

// frontProxy returns how a proxy in front of the apiserver authenticates users;
// nil if no authority signs for one.
func frontProxy(spec Spec) (*authenticatorfactory.RequestHeaderConfig, error) {
	authorities := slices.Concat(spec.FrontProxyCA, spec.GatewayCA)
	if len(authorities) == 0 {
		return nil, nil //nolint:nilnil // upstream's way to have none
	}
	content, err := authority(spec.Name, "front proxy CA", authorities)
	return &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders:     headerrequest.StaticStringSlice{FrontProxyUserHeader},
		UIDHeaders:          headerrequest.StaticStringSlice{},
		GroupHeaders:        headerrequest.StaticStringSlice{FrontProxyGroupHeader},
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice{FrontProxyExtraHeaders},
		AllowedClientNames:  headerrequest.StaticStringSlice{FrontProxyUser, gatewayaccess.User},
		CAContentProvider:   content,
	}, err
}

// GatewayUsers authenticates the requests of the gateway, whose certificate an
// authority in PEM has signed, by their headers.
func GatewayUsers(authorityPEM []byte) (authenticator.Request, error) {
	content, err := dynamiccertificates.NewStaticCAContent("gateway CA", authorityPEM)
	if err != nil {
		return nil, fmt.Errorf("read the gateway CA: %w", err)
	}
	return headerrequest.NewDynamicVerifyOptionsSecure(
		content.VerifyOptions,
		headerrequest.StaticStringSlice{gatewayaccess.User},
		headerrequest.StaticStringSlice{FrontProxyUserHeader},
		headerrequest.StaticStringSlice{},
		headerrequest.StaticStringSlice{FrontProxyGroupHeader},
		headerrequest.StaticStringSlice{FrontProxyExtraHeaders},
	), nil
}
