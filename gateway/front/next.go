package front

import (
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/gateway/members"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
)

// next returns what serves a request, and what to call when that has ended.
func (h *Handler) next(r *http.Request, asked resolve.Asked, caller identity.Caller, target resolve.Target) (http.Handler, func(), error) {
	if target.Key == resolve.Projects {
		return h.projects(asked, caller), func() {}, nil
	}
	tenant := h.Index.ByKey(target.Key)
	if tenant == nil { // it was deleted in between
		return nil, nil, apierrors.NewServiceUnavailable("the control plane of the tenant is being replaced")
	}
	ctx, done, who := r.Context(), func() {}, caller.User
	if target.Member != nil {
		var isMember bool
		if ctx, done, isMember = h.Index.Visit(ctx, tenant.Key, target.Member); !isMember { // no longer
			return nil, nil, statusOf(resolve.Unavailable(asked.Tenant))
		}
		who = members.Inside(target.Member)
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
