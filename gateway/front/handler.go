// Package front is the address that all tenants share: it finds the tenant of
// each request, limits what one caller takes, and forwards.
package front

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/gateway/convert/admission"
	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/gateway/projects"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Handler serves the requests of all tenants.
type Handler struct {
	// Domain is the one below which each tenant has a host; empty for none.
	Domain string
	// Index has the tenants.
	Index *tenants.Index
	// Limits are those of a caller.
	Limits Limits
	// Metrics count requests.
	Metrics *Metrics
	// Log gets a line for each request; the zero value for none.
	Log logr.Logger

	// Reviewer recognizes the tokens of the super cluster.
	Reviewer *identity.Reviewer
	// SuperUsers says that users of the super cluster use the gateway.
	SuperUsers bool
	// Projects serves the API of projects to a user of the super cluster, and makes
	// members reach their tenants; nil for neither.
	Projects *projects.Handler
	// Admission serves the calls of the super cluster's webhooks, and Conversion those
	// of its CRDs. They have a secret in their path, and are not logged.
	Admission, Conversion http.Handler
	// Forwarder forwards requests.
	Forwarder *forward.Forwarder

	inFlight inFlight
	passed   passed
}

// call is a request that is served.
type call struct {
	class  class
	caller identity.Caller
	tenant string
	began  time.Time
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Admission != nil && strings.HasPrefix(r.URL.Path, admission.Path) {
		h.Admission.ServeHTTP(w, r)
		return
	}
	if h.Conversion != nil && strings.HasPrefix(r.URL.Path, names.ConversionPath) {
		h.Conversion.ServeHTTP(w, r)
		return
	}
	c := &call{began: time.Now(), class: refusedClass}
	response := &recorder{ResponseWriter: w}
	defer h.report(r, c, response)
	h.serve(response, r, c)
}

func (h *Handler) serve(w *recorder, r *http.Request, c *call) {
	asked, refusal := resolve.Parse(r, h.Domain)
	if refusal != nil {
		reject(w, r, statusOf(refusal))
		return
	}
	if found, ok := h.publicDocument(r.Method, asked); ok {
		h.servePublic(w, r, c, found)
		return
	}
	caller, err := h.identify(r, asked, c.began)
	if err != nil {
		reject(w, r, err)
		return
	}
	c.caller = caller
	target, refusal := resolve.Resolve(asked, caller.Identity, h.Index)
	if refusal != nil {
		reject(w, r, statusOf(refusal))
		return
	}
	next, done, err := h.next(r, asked, caller, target)
	if err != nil {
		reject(w, r, err)
		return
	}
	defer done()
	c.tenant, c.class = target.Key, classOf(r, asked)
	served, err := h.inFlight.take(callerOf(r, target.Key, caller), c.class, h.Limits)
	if err != nil {
		reject(w, r, err)
		return
	}
	defer served()
	if err := h.Limits.bound(w, r, c.class); err != nil {
		reject(w, r, err)
		return
	}
	h.Metrics.inFlight.WithLabelValues(string(c.class)).Inc()
	defer h.Metrics.inFlight.WithLabelValues(string(c.class)).Dec()
	next.ServeHTTP(w, r)
}

// identify returns the caller. A token that is of no tenant is that of a user of
// the super cluster, if the request may be for it.
func (h *Handler) identify(r *http.Request, asked resolve.Asked, now time.Time) (identity.Caller, error) {
	caller, err := identity.Of(r, h.Index, now)
	if err != nil {
		if errors.Is(err, identity.ErrAmbiguous) {
			return caller, apierrors.NewBadRequest(err.Error())
		}
		return caller, apierrors.NewUnauthorized(err.Error())
	}
	if h.isReviewed(caller.Token, asked) {
		caller, err = h.Reviewer.Of(r.Context(), caller, r.RemoteAddr)
	}
	if h.Projects == nil {
		caller.SuperUser = nil
	}
	if err != nil {
		err = reviewError(err)
	}
	return caller, err
}

// reviewError returns the error of a token that could not be reviewed as one of
// the API.
func reviewError(err error) error {
	if errors.Is(err, identity.ErrTooManyTokens) {
		return apierrors.NewTooManyRequests(err.Error(), busyRetrySeconds)
	}
	return unavailable("the super cluster does not answer")
}

// isReviewed reports whether the super cluster is asked whose the token of a request
// is: that of one of its users is forwarded to no tenant which accepts tokens that
// the gateway does not recognize. Otherwise, the time of the response says nothing
// of whether the tenant exists: the tokens for unknown ones are reviewed, too.
func (h *Handler) isReviewed(token string, asked resolve.Asked) bool {
	entry, _ := h.Index.Find(cmp.Or(asked.Tenant, h.Index.Default()))
	switch {
	case entry.Opaque:
		return token != "" && !h.Reviewer.IsStranger(token)
	case asked.Tenant == "" || asked.Tenant == resolve.System:
		return h.SuperUsers
	}
	return h.Projects != nil
}

// report counts a request, and logs it without its query, which has commands,
// and without headers, which have tokens.
func (h *Handler) report(r *http.Request, c *call, w *recorder) {
	took := time.Since(c.began)
	h.Metrics.requests.WithLabelValues(string(c.class), strconv.Itoa(w.status())).Inc()
	if c.class != watchClass && c.class != upgradeClass {
		h.Metrics.seconds.WithLabelValues(string(c.class)).Observe(took.Seconds())
	}
	if h.Log.GetSink() == nil {
		return
	}
	name := ""
	if who := cmp.Or(c.caller.User, c.caller.SuperUser); who != nil {
		name = who.GetName()
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	h.Log.Info("Request", "tenant", c.tenant, "user", name, "class", c.class, "method", r.Method, "path", r.URL.Path,
		"code", w.status(), "bytes", w.written, "took", took, "client", address)
}

// failed writes the response to a request that could not be forwarded.
func failed(w http.ResponseWriter, r *http.Request, err error) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		reject(w, r, apierrors.NewRequestEntityTooLargeError(limitMessage(tooLarge.Limit)))
		return
	}
	switch {
	case errors.Is(err, forward.ErrNoUsers):
		reject(w, r, apierrors.NewUnauthorized(err.Error()))
	case errors.Is(err, egress.ErrExternalAddress): // a retry would not help
		reject(w, r, apierrors.NewServiceUnavailable(err.Error()))
	case errors.Is(err, forward.ErrReserved), errors.Is(err, forward.ErrActsAsOther):
		reject(w, r, statusOf(&resolve.Refusal{Code: http.StatusForbidden, Message: err.Error()}))
	default:
		reject(w, r, unavailable("the control plane of the tenant does not answer"))
	}
}

func unavailable(message string) error {
	status := apierrors.NewServiceUnavailable(message)
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: downRetrySeconds}
	return status
}

const downRetrySeconds = 5

// statusOf returns a refusal as an error of the API.
func statusOf(refusal *resolve.Refusal) error {
	status := metav1.Status{
		Status: metav1.StatusFailure, Message: refusal.Message, Reason: reasonOf(refusal.Code),
		Code: int32(refusal.Code), //nolint:gosec // a status
	}
	if refusal.RetryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(refusal.RetryAfter.Seconds())}
	}
	return &apierrors.StatusError{ErrStatus: status}
}

func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	}
	return metav1.StatusReasonBadRequest
}

func reject(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{}, w, r)
}
