// Package convert serves the requests of converted tenants: each becomes one
// request of the super cluster, and its response one of the tenant.
package convert

import (
	"context"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/virtualcluster/virtualcluster/gateway/convert/conversion"
	"github.com/virtualcluster/virtualcluster/gateway/convert/expressions"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/rbac"
	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
)

// Namespaces is an index of the namespaces of converted tenants.
type Namespaces interface {
	naming.Namespaces
	// Exists reports whether a namespace of the super cluster exists, is the
	// tenant's, and is not being deleted.
	Exists(clusterKey, superName string) bool
	// Set adds a namespace of the super cluster that was created or read.
	Set(namespace metav1.Object)
}

// Accounts recognizes the tokens of a tenant's service accounts.
type Accounts interface {
	// AuthenticateFor returns the user of a token for an audience of the tenant; nil
	// for a token that is none. The client has a remote address.
	AuthenticateFor(ctx context.Context, token, remote, audience string) (user.Info, error)
}

// Handler serves the requests of one converted tenant. The user is in the
// request's context; path and query are the tenant's.
type Handler struct {
	// Tenant is the cluster key.
	Tenant string
	// Super sends requests to the super cluster with the gateway's credentials.
	Super http.RoundTripper
	// Fenced sends requests with the credentials of the tenant's service account,
	// and FencedUpgrades those that take over the connection, by HTTP/1.1.
	Fenced, FencedUpgrades http.RoundTripper
	// SuperURL is the super cluster's apiserver.
	SuperURL *url.URL
	// Namespaces has the namespaces of the tenant.
	Namespaces Namespaces
	// CRDs has the custom resources of the tenant.
	CRDs *resources.Index
	// Churn bounds how often tenants delete CRDs and change what they serve.
	Churn *resources.Churn
	// Expressions bounds how much tenants have compiled.
	Expressions *expressions.Pace
	// Nodes selects the nodes that the tenant sees, by their labels in the super
	// cluster, in addition to those that run its pods; nil for none.
	Nodes labels.Selector
	// Labels and Annotations are those that the platform gives to namespaces that
	// the tenant creates, in addition to names.Converted and names.Namespace. The
	// tenant neither sees nor changes them.
	Labels, Annotations map[string]string
	// Discovery serves what clients ask to find the resources.
	Discovery Discovery
	// Authorize decides by the RBAC of the tenant.
	Authorize authorizer.Authorizer
	// RBAC has the roles and bindings of the tenant.
	RBAC rbac.Tenant
	// Accounts recognizes the tokens of the tenant's service accounts.
	Accounts Accounts
	// RunsDaemonSets: the tenant may create DaemonSets.
	RunsDaemonSets bool
	// Conversion is where the super cluster calls the gateway instead of the conversion
	// webhooks of the tenant's CRDs.
	Conversion conversion.Gateway
	// AllowsConversionWebhooks: CRDs may get them. Those that have one keep it.
	AllowsConversionWebhooks bool
	// Tokens seals the tokens to continue lists.
	Tokens *Sealer
	// Admission is what the tenant has of admission of its own; nil if that is not
	// evaluated.
	Admission Admission
	// Account is the gateway's in the super cluster. It is used for Admission only.
	Account requester.Account
}

// Discovery serves the documents by which a tenant's clients find the resources.
type Discovery interface {
	http.Handler
	// Versions returns the versions of the API groups that the tenant has.
	Versions(ctx context.Context) ([]schema.GroupVersion, error)
}

// Admission is what a tenant has of webhooks and policies.
type Admission interface {
	// Count returns how many objects of a kind it has.
	Count(kind string) int
	// IsActive reports whether requests of the tenant have to meet any.
	IsActive() bool
}

// infos finds out what a request is for.
var infos = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// ServeHTTP implements http.Handler. A user may act as another of the tenant,
// with the tenant's permission to impersonate.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		reject(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.serve(w, r, info); err != nil {
			reject(w, r, apiError(err))
		}
	})
	r = r.WithContext(request.WithRequestInfo(r.Context(), info))
	impersonation.WithImpersonation(served, h.Authorize, scheme.Codecs).ServeHTTP(w, r)
}

func reject(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{}, w, r)
}

// serve returns an error only if it has written nothing.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) error {
	if err := h.authorize(r, info); err != nil {
		return err
	}
	if !info.IsResourceRequest {
		h.Discovery.ServeHTTP(w, r)
		return nil
	}
	c, err := h.newCall(r, info)
	switch {
	case err != nil:
		return err
	case c.isStream():
		return c.stream(w, r)
	case c.isProxy():
		return c.proxy(w, r)
	case c.kind.IsNode():
		return c.serveNodes(w, r)
	case c.kind.IsAPIService():
		return c.serveAPIServices(w, r)
	case c.kind.Class == kinds.Answered:
		return c.review(w, r)
	case c.kind.Class == kinds.Shelved:
		return c.serveShelved(w, r)
	}
	return c.serveObjects(w, r)
}

// authorize asks the tenant's authorizer. An upgrade by GET needs the permission
// to create, too, as in a cluster.
func (h *Handler) authorize(r *http.Request, info *request.RequestInfo) error {
	if err := h.permitted(r.Context()); err != nil {
		return err
	}
	if info.Verb != verbGet || !httpstream.IsUpgradeRequest(r) {
		return nil
	}
	created := *info
	created.Verb = verbCreate
	return h.permitted(request.WithRequestInfo(r.Context(), &created))
}

func (h *Handler) permitted(ctx context.Context) error {
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return err
	}
	decision, reason, err := h.Authorize.Authorize(ctx, attributes)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return responsewriters.ForbiddenStatusError(attributes, reason)
}
