// Package validation asks the validators of plugins before copies are written. It keeps what a plugin may do wrong (panic, hang,
// fail) from anything but the object that the plugin was asked about.
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

	"github.com/virtualcluster/virtualcluster/plugins"
)

// Options say what becomes of plugins that do not answer.
type Options struct {
	// Timeout is how long a validator may take for one object, and how long an object waits for its tenant's lock.
	Timeout time.Duration
	// FailOpen writes what a validator could not tell about. Otherwise that is refused.
	FailOpen bool
	// Metrics are this gate's own.
	Metrics *Metrics
}

// Gate stands before the writes of copies. Make one with [New].
type Gate struct {
	scheme   *runtime.Scheme
	failOpen bool
	metrics  *Metrics
	all      []*validator
	byKind   map[schema.GroupKind][]*validator
	syncer   atomic.Pointer[Syncer]
}

// FailureError is the error of a write that was not done because a validator could not tell whether it may be. The tenant reads it;
// the cause is for the log.
type FailureError struct {
	// Plugin is the validator's name.
	Plugin string
	cause  error
}

// Error names the plugin and not the cause.
func (f *FailureError) Error() string {
	return fmt.Sprintf("it cannot be checked whether the limits allow this, because validator %s does not work; "+
		"the platform's admins find out why in the syncer's log", f.Plugin)
}

// Unwrap is the cause.
func (f *FailureError) Unwrap() error { return f.cause }

// New makes a gate of the plugins, which have different IDs and are asked in this order.
func New(scheme *runtime.Scheme, registrations []plugins.Registration, env plugins.Environment, opts Options) (*Gate, error) {
	g := &Gate{
		scheme:   scheme,
		failOpen: opts.FailOpen,
		metrics:  opts.Metrics,
		byKind:   map[schema.GroupKind][]*validator{},
	}
	env.Retry, env.Serves = g.retry, g.serves
	logger := env.Logger
	for _, r := range registrations {
		env.Logger = logger.WithName(r.ID)
		v, err := initialize(r, env)
		if err != nil {
			return nil, fmt.Errorf("plugin %s cannot start: %w", r.ID, err)
		}
		one := &validator{Validator: v, id: r.ID, timeout: opts.Timeout, metrics: opts.Metrics, late: map[string]int{}}
		g.all = append(g.all, one)
		for _, kind := range v.Kinds() {
			g.byKind[kind] = append(g.byKind[kind], one)
		}
	}
	return g, nil
}

// initialize makes a plugin's validator.
func initialize(r plugins.Registration, env plugins.Environment) (v plugins.Validator, err error) {
	defer recovered(&err)
	v, err = r.InitFn(env)
	if err == nil && v == nil {
		err = errors.New("InitFn returned no validator")
	}
	return v, err
}

// Validators are those that were made, in the order in which they are asked.
func (g *Gate) Validators() []plugins.Validator {
	all := make([]plugins.Validator, 0, len(g.all))
	for _, v := range g.all {
		all = append(all, v.Validator)
	}
	return all
}

// Syncer is what validators may ask of the syncer, by a tenant's key.
type Syncer struct {
	// Retry has what was rejected of a tenant tried again.
	Retry func(tenant string)
	// Serves says whether a tenant is served.
	Serves func(tenant string) bool
}

// Attach tells the gate which syncer it stands in. Before that, nobody is served.
func (g *Gate) Attach(s Syncer) { g.syncer.Store(&s) }

func (g *Gate) retry(tenant string) {
	if s := g.syncer.Load(); s != nil {
		s.Retry(tenant)
	}
}

func (g *Gate) serves(tenant string) bool {
	s := g.syncer.Load()
	return s != nil && s.Serves(tenant)
}

// Watches says whether a validator is asked about objects of this kind.
func (g *Gate) Watches(obj client.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, g.scheme)
	return err != nil || len(g.byKind[gvk.GroupKind()]) > 0
}

// Write does a write of a tenant's copy if all validators of its kind agree: a [plugins.RejectionError] or a [FailureError] says
// that it was not done. Meanwhile the tenant is locked. Was is the copy as it is, or nil.
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
		// A validator that hangs may go on reading while the object is written.
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
		if err = g.judge(ctx, v, err); err != nil {
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

// finish does a write that is not given up when its tenant is let go of: nobody could tell then whether it was done, and whoever serves
// the tenant next would not count it.
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

// explained says in a rejection what the tenant cannot do.
func explained(err error, request plugins.Request) error {
	no, ok := errors.AsType[*plugins.RejectionError](err)
	if !ok {
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

// judge says what becomes of a write after a validator's answer, and counts the answer.
func (g *Gate) judge(ctx context.Context, v *validator, err error) error {
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
