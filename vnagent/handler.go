package vnagent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/vnagent/resourcemetrics"
)

// handler answers the kubelet API.
type handler struct {
	tenants tenants
	pods    pods
	limit   *limit
	super   *super
	usage   resourcemetrics.Server
	metrics *Metrics
	log     logr.Logger
}

// order is a request that is permitted.
type order struct {
	target target
	tenant tenant
	// pod is the copy's key in the super cluster.
	pod types.NamespacedName
	// query are the parameters that the super cluster is to get.
	query url.Values
}

// ServeHTTP answers a request of a tenant's apiserver.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, known := parseTarget(r.URL)
	measured := resourcemetrics.Serves(r.URL)
	switch {
	case measured:
		t.call = callMetrics
	case !known:
		t.call = callOther
	}
	who, err := h.identify(r)
	switch {
	case err != nil:
		h.refuse(w, t, err)
	case r.URL.Path == "/healthz":
		_, _ = w.Write([]byte("ok"))
	case measured:
		h.measure(w, r, t, who)
	case !known:
		h.refuse(w, t, refusef(http.StatusNotFound, "this node answers containerLogs, exec, attach and portForward of a pod, and nothing else"))
	case !t.call.allows(r.Method):
		h.refuse(w, t, refusef(http.StatusMethodNotAllowed, "%s does not support the method %s", t.call, r.Method))
	default:
		h.answer(w, r, order{target: t, tenant: who})
	}
}

// answer executes an order within the tenant's limit.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, o order) {
	done, ok := h.admit(w, o.target, o.tenant)
	if !ok {
		return
	}
	defer done()
	var err error
	if o.query, err = o.target.query(r.URL.Query()); err != nil {
		h.refuse(w, o.target, refusef(http.StatusBadRequest, "%s", err))
		return
	}
	if o.pod, err = h.pods.find(r.Context(), o.tenant, o.target); err != nil {
		h.refuse(w, o.target, err)
		return
	}
	h.forward(w, r, o)
}

// measure answers what the tenant's pods use, within the tenant's limit.
func (h *handler) measure(w http.ResponseWriter, r *http.Request, t target, who tenant) {
	done, ok := h.admit(w, t, who)
	if !ok {
		return
	}
	defer done()
	code, err := h.usage.Serve(w, r, resourcemetrics.Tenant{Key: who.key, Namespace: who.namespace, Name: who.name, UID: who.uid})
	if err != nil && r.Context().Err() == nil {
		h.log.Error(err, "a request could not be answered", "call", t.call)
	}
	h.count(t.call, code)
}

// admit counts a request that is being answered, unless its tenant has too
// many. The function that it returns ends the request.
func (h *handler) admit(w http.ResponseWriter, t target, who tenant) (done func(), ok bool) {
	giveBack, ok := h.limit.take(who.uid)
	if !ok {
		h.refuse(w, t, refusef(http.StatusTooManyRequests,
			"this cluster has %d streams open already, which is as many as it may have: end one of them", h.limit.most))
		return nil, false
	}
	open := h.metrics.streams.WithLabelValues(string(t.call))
	open.Inc()
	return func() { open.Dec(); giveBack() }, true
}

// refuse tells a tenant why there is no answer. Errors that are not for tenants
// are logged.
func (h *handler) refuse(w http.ResponseWriter, t target, err error) {
	r := asRefusal(err)
	if r.message != err.Error() {
		h.log.Error(err, "a request could not be answered", "call", t.call)
	}
	h.count(t.call, r.code)
	http.Error(w, r.message, r.code)
}

func (h *handler) count(c call, code int) {
	h.metrics.requests.WithLabelValues(string(c), strconv.Itoa(code)).Inc()
}

// identify says whose apiserver sends a request.
func (h *handler) identify(r *http.Request) (tenant, error) {
	who, err := h.tenants.identify(r.Context(), r.TLS.PeerCertificates[0], time.Now())
	if err != nil {
		h.refused(*r.TLS, err)
		return tenant{}, refusef(http.StatusUnauthorized,
			"the apiserver's kubelet client certificate is not accepted: %s", certificateProblem(err))
	}
	return who, nil
}

// verify ends a handshake with a client that is not a tenant's apiserver,
// before anything is read of a request.
func (h *handler) verify(ctx context.Context, state tls.ConnectionState) error {
	_, err := h.tenants.identify(ctx, state.PeerCertificates[0], time.Now())
	if err != nil {
		h.refused(state, err)
	}
	return err
}

// refused tells the admin of a certificate that was refused.
func (h *handler) refused(state tls.ConnectionState, err error) {
	certificate := state.PeerCertificates[0]
	reason := certificateProblem(err)
	h.metrics.certificates.WithLabelValues(reason).Inc()
	h.log.Info("Refused a client certificate", "reason", reason, "error", err.Error(),
		"subject", certificate.Subject.String(), "issuer", certificate.Issuer.String(),
		"serial", fmt.Sprintf("%x", certificate.SerialNumber), "notAfter", certificate.NotAfter)
}

func certificateProblem(err error) string {
	switch {
	case expired(err):
		return refusedExpired
	case errors.Is(err, errUnknown):
		return refusedUnknown
	case errors.Is(err, errAmbiguous):
		return refusedAmbiguous
	default:
		return refusedError
	}
}
