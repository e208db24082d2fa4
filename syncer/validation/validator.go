package validation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// Why a validator did not answer.
var (
	errTimeout = errors.New("it did not answer in time")
	errHung    = errors.New("it has not answered yet about an object of this tenant from before")
	errBusy    = errors.New("other objects of the tenant are being validated; this one is tried again")
	errPanic   = errors.New("it panicked")
	// errNotDone ends what a validator allowed and another one did not.
	errNotDone = apierrors.NewBadRequest("another validator does not allow it")
	// errUnknownTenant is the refusal of objects of a tenant that a validator has no lock for.
	errUnknownTenant = apierrors.NewBadRequest("cannot get tenant")
)

// grace is how long a call has to end after its context.
const grace = 100 * time.Millisecond

// validator is a plugin's, with what keeps watch over it.
type validator struct {
	plugins.Validator

	id      string
	timeout time.Duration
	metrics *Metrics

	mu sync.Mutex
	// late counts, by tenant, the calls that nobody waits for any more. One that hangs for ever is one goroutine, not one more
	// with each object.
	late map[string]int
}

// call is a tenant locked with a validator.
type call struct {
	*validator

	locker plugins.Locker
	since  time.Time
}

// ask locks the tenant and asks the validator. Where it agrees, the tenant stays locked until the call is ended.
func (v *validator) ask(ctx context.Context, request plugins.Request) (*call, error) {
	c, err := v.lock(ctx, request.Tenant.Key)
	if err != nil {
		return nil, err
	}
	err = v.run(ctx, request.Tenant.Key, errTimeout, c.unlock, func(ctx context.Context) error { return v.Validate(ctx, request) })
	if err == nil {
		return c, nil
	}
	if !isLate(err) {
		c.unlock()
	}
	return nil, err
}

// lock locks the tenant.
func (v *validator) lock(ctx context.Context, tenant string) (*call, error) {
	c := &call{validator: v}
	locked := false
	late := func() {
		if locked {
			c.unlock()
		}
	}
	err := v.run(ctx, tenant, errBusy, late, func(ctx context.Context) error {
		if c.locker = v.Locker(tenant); c.locker == nil {
			return errUnknownTenant
		}
		if err := c.locker.Lock(ctx); err != nil {
			return err
		}
		c.since, locked = time.Now(), true
		return nil
	})
	return c, err
}

// end tells a validator that keeps count how the write ended, and unlocks the tenant.
func (c *call) end(ctx context.Context, request plugins.Request, result error) {
	accountant, counts := c.Validator.(plugins.Accountant)
	if counts {
		err := c.run(context.WithoutCancel(ctx), request.Tenant.Key, errTimeout, c.unlock, func(context.Context) error {
			accountant.Settled(request, result)
			return nil
		})
		if err != nil {
			c.metrics.validations.WithLabelValues(c.id, resultOf(err)).Inc()
		}
		if isLate(err) {
			return
		}
	}
	c.unlock()
}

func (c *call) unlock() {
	var err error
	defer recovered(&err)
	c.metrics.locked.WithLabelValues(c.id).Observe(time.Since(c.since).Seconds())
	c.locker.Unlock()
}

// lateError says that a call has not come back. What it holds, it gives back by itself.
type lateError struct{ error }

// Unwrap is why it was not waited for any longer.
func (e lateError) Unwrap() error { return e.error }

func isLate(err error) bool { return errors.As(err, &lateError{}) }

// run calls a plugin in a goroutine of its own, since nobody can stop a call that hangs. One that does not come back in time is left
// with an error of that cause, and late is called when it comes back after all.
func (v *validator) run(
	ctx context.Context, tenant string, cause error, late func(), call func(context.Context) error,
) error {
	if v.hangs(tenant) {
		return lateError{errHung}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, v.timeout, cause)
	defer cancel()
	answer, left := make(chan error), make(chan struct{})
	go func() {
		err := protected(ctx, call)
		select {
		case answer <- err:
		case <-left:
			late()
			v.count(tenant, -1)
		}
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-answer:
		if err != nil {
			return context.Cause(ctx)
		}
		return nil
	case <-time.After(grace):
		v.count(tenant, 1)
		close(left)
		return lateError{context.Cause(ctx)}
	}
}

// hangs says whether a call about this tenant has not come back.
func (v *validator) hangs(tenant string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.late[tenant] > 0
}

func (v *validator) count(tenant string, by int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.late[tenant] += by
	if v.late[tenant] == 0 {
		delete(v.late, tenant)
	}
}

// protected calls a function and makes an error of a panic.
func protected(ctx context.Context, call func(context.Context) error) (err error) {
	defer recovered(&err)
	return call(ctx)
}

// recovered is deferred around what a plugin does.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v\n%s", errPanic, r, debug.Stack())
	}
}
