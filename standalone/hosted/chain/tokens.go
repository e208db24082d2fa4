package chain

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/registry/authentication/tokenreview"
	secretstore "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	serviceaccounts "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
)

// tokenRequests serves requests for tokens. Upstream's REST storage has fixed
// audiences, so there is one for each.
type tokenRequests struct {
	*serviceaccounts.TokenREST // serves what does not depend on the audience

	chain  *Chain
	create func(Spec) (*serviceaccounts.TokenREST, error)

	mu         sync.Mutex // guards byAudience
	byAudience map[string]*serviceaccounts.TokenREST
}

// replaceTokenRequests replaces the requests for tokens of the core API.
func (c *Chain) replaceTokenRequests(options generic.RESTOptionsGetter, core map[string]rest.Storage) error {
	const requests = "serviceaccounts/token"
	upstream, err := take[*serviceaccounts.TokenREST](core, requests)
	if err != nil {
		return err
	}
	secrets, err := take[*secretstore.REST](core, "secrets")
	if err != nil {
		return err
	}
	extra := c.config.KubeAPIs.ControlPlane.Extra
	core[requests] = &tokenRequests{
		TokenREST: upstream, chain: c, byAudience: map[string]*serviceaccounts.TokenREST{},
		create: func(spec Spec) (*serviceaccounts.TokenREST, error) {
			all, err := serviceaccounts.NewREST(options, issuers{c}, spec.audiences(), extra.ServiceAccountMaxExpiration,
				c.core.pods, secrets, c.core.nodes, extra.ExtendExpiration, extra.ServiceAccountExtendedMaxExpiration)
			if err != nil {
				return nil, fmt.Errorf("create the token requests of %s: %w", spec.audience(), err)
			}
			return all.Token, nil
		},
	}
	return nil
}

// Create implements rest.NamedCreater.
func (r *tokenRequests) Create(
	ctx context.Context, name string, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	t, err := r.chain.tenant(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	of, err := r.of(t.spec)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return of.Create(ctx, name, object, validate, options)
}

func (r *tokenRequests) of(spec Spec) (*serviceaccounts.TokenREST, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if existing := r.byAudience[spec.audience()]; existing != nil {
		return existing, nil
	}
	created, err := r.create(spec)
	if err == nil {
		r.byAudience[spec.audience()] = created
	}
	return created, err
}

// tokenReviews reviews each token as the tenant of its request authenticates
// it. Upstream's REST storage authenticates without the context of the request.
type tokenReviews struct {
	*tokenreview.REST

	chain *Chain
}

// replaceTokenReviews replaces the reviews of the authentication API.
func (c *Chain) replaceTokenReviews(_ generic.RESTOptionsGetter, authentication map[string]rest.Storage) error {
	const reviews = "tokenreviews"
	upstream, err := take[*tokenreview.REST](authentication, reviews)
	if err != nil {
		return err
	}
	authentication[reviews] = &tokenReviews{REST: upstream, chain: c}
	return nil
}

// Create authenticates the token.
func (r *tokenReviews) Create(
	ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	t, err := r.chain.tenant(ctx)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	outside, err := t.authenticator.get()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return tokenreview.NewREST(outside, t.spec.audiences()).Create(ctx, object, validate, options)
}
