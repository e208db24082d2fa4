package front

import (
	"context"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/gateway/members"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
)

const beingReplaced = "the control plane of the tenant is being replaced"

// next returns what serves a request, and what to call when that has ended.
func (h *Handler) next(r *http.Request, asked resolve.Asked, caller identity.Caller, target resolve.Target) (http.Handler, func(), error) {
	if target.Key == resolve.Projects {
		return h.projects(asked, caller), func() {}, nil
	}
	tenant := h.Index.ByKey(target.Key)
	if tenant == nil { // it was deleted in between
		return nil, nil, apierrors.NewServiceUnavailable(beingReplaced)
	}
	ctx, done, who := r.Context(), func() {}, caller.User
	if target.Member != nil {
		var isMember bool
		if ctx, done, isMember = h.Index.Visit(ctx, tenant.Key, target.Member); !isMember { // no longer
			return nil, nil, statusOf(resolve.Unavailable(asked.Tenant))
		}
		who = members.Inside(target.Member)
	}
	if tenant.Converted != nil {
		if who == nil {
			var err error
			if who, err = accountOf(r, caller, tenant); err != nil {
				done()
				return nil, nil, err
			}
		}
		return converted(ctx, tenant, asked, who), done, nil
	}
	if who == nil && caller.Token != "" && tenant.Opaque && !h.Reviewer.IsStranger(caller.Token) {
		done() // the name has led to another tenant when the token was reviewed
		return nil, nil, unavailable(beingReplaced)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Forwarder.Forward(w, r.WithContext(ctx), forward.Request{
			Way: tenant.Way, Asked: asked, User: who, Lasts: classOf(r, asked) == watchClass, Failed: failed,
		})
	}), done, nil
}

// projects serves the API of projects to a user of the super cluster.
func (h *Handler) projects(asked resolve.Asked, caller identity.Caller) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		target, err := asked.URL(&url.URL{})
		if err != nil {
			failed(w, r, err)
			return
		}
		inner.URL = target
		h.Projects.Serve(w, inner, caller.SuperUser)
	})
}

// accountOf returns the user of the token of a request for a tenant without a
// control plane. The super cluster sees only tokens that are for the tenant.
func accountOf(r *http.Request, caller identity.Caller, tenant *tenants.Tenant) (user.Info, error) {
	if caller.Token == "" || caller.Of != tenant.Key {
		return nil, apierrors.NewUnauthorized("a client certificate or a token of the tenant is required")
	}
	who, err := tenant.Accounts.Authenticate(r.Context(), caller.Token, r.RemoteAddr)
	switch {
	case err != nil:
		return nil, reviewError(err)
	case who == nil:
		return nil, apierrors.NewUnauthorized("the token is not valid for this tenant")
	}
	return who, nil
}

// converted serves a user of a tenant without a control plane.
func converted(ctx context.Context, tenant *tenants.Tenant, asked resolve.Asked, who user.Info) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, err := asked.URL(&url.URL{})
		if err != nil {
			failed(w, r, err)
			return
		}
		ctx, end := tenant.Way.Bound(request.WithUser(ctx, identity.Authenticated(who)))
		defer end()
		inner := r.Clone(ctx)
		inner.URL = target
		tenant.Converted.ServeHTTP(w, inner)
	})
}
