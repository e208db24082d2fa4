package chain

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// ownName is the host in the configuration of webhooks that the apiserver
// itself serves.
const ownName = "kubernetes.default.svc"

// errNoWebhook answers the call of a webhook at anything but an aggregated API.
var errNoWebhook = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
	Message: "a webhook at the apiserver itself has to be an aggregated API: use a Service with pods, or the path of such an API",
}}

type callKey struct{}

// CallsWebhook reports whether a request calls a webhook that leads to the
// apiserver itself. The tenant has caused it, though the control plane sends it.
func CallsWebhook(ctx context.Context) bool {
	calls, _ := ctx.Value(callKey{}).(bool)
	return calls
}

// serveWebhook serves the call of a webhook, by an aggregated API. Anything else
// would be done with the rights of the control plane itself, and admission could
// call the webhook again.
func (c *Chain) serveWebhook(w http.ResponseWriter, r *http.Request) {
	found, err := c.addedBy(r.Context())
	if err != nil {
		unavailable(w, r, err)
		return
	}
	if version, ok := c.addedVersion(r.URL.Path); ok {
		if remote := found.remoteAPI(version); remote != nil {
			remote.ServeHTTP(w, r)
			return
		}
	}
	responsewriters.ErrorNegotiated(errNoWebhook, legacyscheme.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// configForOwnWebhooks configures the clients of webhooks that the apiserver
// itself serves. It has no Transport, because upstream adds the certificate of
// the webhook's authority, which would conflict.
func (t *Tenant) configForOwnWebhooks() *rest.Config {
	refuse := t.spec.Network.Dialer(egress.Itself)
	return &rest.Config{
		Dial:          refuse,
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return toItself{own: t.config.Transport, refuse: refuse} },
	}
}

// toItself sends the calls of webhooks to the apiserver of a tenant, as the control
// plane itself. It refuses other hosts: a response may be a redirect.
type toItself struct {
	own    http.RoundTripper
	refuse egress.Dial
}

// RoundTrip implements http.RoundTripper.
func (t toItself) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == ownName || req.URL.Host == ownName+":443" {
		return t.own.RoundTrip(req.WithContext(context.WithValue(req.Context(), callKey{}, true)))
	}
	conn, err := t.refuse(req.Context(), "tcp", req.URL.Host)
	if err == nil {
		err = conn.Close()
	}
	if err == nil {
		err = &egress.RefusedError{Address: req.URL.Host, Reason: egress.Loopback}
	}
	return nil, err
}
