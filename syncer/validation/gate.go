// Package validation calls the validators of plugins before copies are written.
// It contains faults of a plugin (panics, hangs, errors): they only affect the
// object that is being validated.
package validation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/virtualcluster/virtualcluster/internal/panics"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// Options configure a gate.
type Options struct {
	// Timeout limits the time of a validator for one object, and how long an
	// object waits for its tenant's lock.
	Timeout time.Duration
	// FailOpen allows writes that a validator could not decide about. By
	// default they fail.
	FailOpen bool
	// Serves reports whether a tenant without a control plane is served, beside
	// those of the syncer.
	Serves func(tenant string) bool
	// Metrics are the metrics of this gate.
	Metrics *Metrics
}

// Gate validates copies before they are written. Create it with [New].
type Gate struct {
	scheme   *runtime.Scheme
	failOpen bool
	others   func(tenant string) bool
	metrics  *Metrics
	all      []*validator
	byKind   map[schema.GroupKind][]*validator
	syncer   atomic.Pointer[Syncer]
}

// FailureError is returned for a write that was not executed because a
// validator could not decide about it. The tenant reads its message; the cause
// is for the log.
type FailureError struct {
	// Plugin is the name of the validator.
	Plugin string
	cause  error
}

// Error returns a message with the plugin, without the cause.
func (f *FailureError) Error() string {
	return fmt.Sprintf("it cannot be checked whether the limits allow this, because validator %s does not work; "+
		"the reason is in the syncer's log", f.Plugin)
}

// Unwrap returns the cause.
func (f *FailureError) Unwrap() error { return f.cause }

// New returns a gate with the plugins, which have different IDs and are called
// in this order.
func New(scheme *runtime.Scheme, registrations []plugins.Registration, env plugins.Environment, opts Options) (*Gate, error) {
	g := &Gate{
		scheme:   scheme,
		failOpen: opts.FailOpen,
		others:   opts.Serves,
		metrics:  opts.Metrics,
		byKind:   map[schema.GroupKind][]*validator{},
	}
	env.Retry, env.Serves = g.retry, g.serves
	logger := env.Logger
	for _, r := range registrations {
		env.Logger = logger.WithName(r.ID)
		v, err := initialize(r, env)
		if err != nil {
			return nil, fmt.Errorf("initialize plugin %s: %w", r.ID, err)
		}
		one := &validator{Validator: v, id: r.ID, timeout: opts.Timeout, metrics: opts.Metrics, late: map[string]int{}}
		g.all = append(g.all, one)
		for _, kind := range v.Kinds() {
			g.byKind[kind] = append(g.byKind[kind], one)
		}
	}
	return g, nil
}

// initialize creates a plugin's validator.
func initialize(r plugins.Registration, env plugins.Environment) (v plugins.Validator, err error) {
	defer panics.Recover(&err)
	v, err = r.InitFn(env)
	if err == nil && v == nil {
		err = errors.New("InitFn returned no validator")
	}
	return v, err
}

// Validators returns the validators in the order in which they are called.
func (g *Gate) Validators() []plugins.Validator {
	all := make([]plugins.Validator, 0, len(g.all))
	for _, v := range g.all {
		all = append(all, v.Validator)
	}
	return all
}

// Syncer has the functions of the syncer that validators can call, by a
// tenant's key.
type Syncer struct {
	// Retry requeues the rejected objects of a tenant.
	Retry func(tenant string)
	// Serves reports whether a tenant is served.
	Serves func(tenant string) bool
}

// Attach sets the syncer of the gate. Before that, no tenant is served.
func (g *Gate) Attach(s Syncer) { g.syncer.Store(&s) }

func (g *Gate) retry(tenant string) {
	if s := g.syncer.Load(); s != nil {
		s.Retry(tenant)
	}
}

func (g *Gate) serves(tenant string) bool {
	s := g.syncer.Load()
	return s != nil && s.Serves(tenant) || g.others != nil && g.others(tenant)
}

// Watches reports whether a validator watches the kind of an object.
func (g *Gate) Watches(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, g.scheme)
	return err != nil || len(g.byKind[gvk.GroupKind()]) > 0
}

// Write executes a write of a tenant's copy if all validators of its kind allow
// it; otherwise it returns a [plugins.RejectionError] or a [FailureError]. The
// tenant is locked meanwhile. was is the current copy, or nil.
func (g *Gate) Write(
	ctx context.Context, tenant plugins.Tenant, obj, was client.Object, write func(context.Context) error,
) error {
	gvk, err := apiutil.GVKForObject(obj, g.scheme)
	if err != nil {
		return err
	}
	watching := g.byKind[gvk.GroupKind()]
	if len(watching) == 0 {
		return write(ctx)
	}
	request := plugins.Request{Tenant: tenant, Kind: gvk, Object: obj, Was: was}
	asked := request
	if g.failOpen {
		// A validator that hangs may still read its object while the copy is
		// written.
		asked.Object = obj.DeepCopyObject().(client.Object)
	}
	agreed := make([]*call, 0, len(watching))
	settle := func(err error) {
		for _, c := range agreed {
			c.end(ctx, request, err)
		}
		agreed = nil
	}
	for _, v := range watching {
		c, err := v.ask(ctx, asked)
		if err = g.decide(ctx, v, err); err != nil {
			settle(errNotDone)
			return explained(err, request)
		}
		if c != nil {
			agreed = append(agreed, c)
		}
	}
	err = finish(ctx, write)
	settle(err)
	return err
}

// finish executes a write that is not cancelled when its tenant is disengaged:
// its result would be unknown then, and the replica that serves the tenant next
// would not count it.
func finish(ctx context.Context, write func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	whole := context.WithoutCancel(ctx)
	if deadline, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		whole, cancel = context.WithDeadline(whole, deadline)
		defer cancel()
	}
	return write(whole)
}

// explained adds the operation and the kind to the message of a rejection.
func explained(err error, request plugins.Request) error {
	no := plugins.AsRejection(err)
	if no == nil {
		return err
	}
	what := "create "
	if request.Was != nil {
		what = "change "
	}
	what = "cannot " + what + strings.ToLower(request.Kind.Kind)
	if no.Reason == "" || no.Reason == plugins.ReasonQuotaExceeded {
		return &plugins.RejectionError{
			Reason: plugins.ReasonQuotaExceeded, Message: what + " due to exceeding quota limit: " + no.Message,
		}
	}
	return &plugins.RejectionError{Reason: no.Reason, Message: what + ": " + no.Message}
}

// decide returns the error of a write after a validator's answer, and counts
// the answer.
func (g *Gate) decide(ctx context.Context, v *validator, err error) error {
	result := resultOf(err)
	g.metrics.validations.WithLabelValues(v.id, result).Inc()
	switch result {
	case allowed, rejected, busy:
		return err
	case unknown:
		return errUnknownTenant
	}
	log.FromContext(ctx).Error(err, "A validator did not answer", "plugin", v.id, "result", result, "written", g.failOpen)
	if g.failOpen {
		return nil
	}
	return &FailureError{Plugin: v.Name(), cause: err}
}
