package validation

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/internal/panics"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// Reasons why a validator did not answer.
var (
	errTimeout = errors.New("it did not answer in time")
	errHung    = errors.New("an earlier call for this tenant has not returned yet")
	errBusy    = errors.New("other objects of the tenant are being validated; retrying")
	// errNotDone settles a write that another validator did not allow.
	errNotDone = apierrors.NewBadRequest("another validator does not allow it")
	// errUnknownTenant rejects the objects of a tenant for which a validator
	// has no lock.
	errUnknownTenant = apierrors.NewBadRequest("cannot get tenant")
)

// grace is how long a call may take to return after its context is done.
const grace = 100 * time.Millisecond

// validator is a plugin's validator with the state that contains its faults.
type validator struct {
	plugins.Validator

	id      string
	timeout time.Duration
	metrics *Metrics

	mu sync.Mutex
	// late counts, by tenant, the abandoned calls. A validator that hangs for
	// ever costs one goroutine, not one more for each object.
	late map[string]int
}

// call is a call of a validator that has locked a tenant.
type call struct {
	*validator

	locker plugins.Locker
	since  time.Time
}

// ask locks the tenant and calls the validator. If it allows the write, the
// tenant stays locked until the call is ended.
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

// end reports the result of the write to a validator that is an accountant, and
// unlocks the tenant.
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
	defer panics.Recover(&err)
	c.metrics.locked.WithLabelValues(c.id).Observe(time.Since(c.since).Seconds())
	c.locker.Unlock()
}

// lateError reports that a call was abandoned. The call releases its lock
// itself.
type lateError struct{ error }

// Unwrap returns the reason for abandoning it.
func (e lateError) Unwrap() error { return e.error }

func isLate(err error) bool { return errors.As(err, &lateError{}) }

// run calls a plugin in a new goroutine, since a call that hangs cannot be
// stopped. If it does not return in time, run returns an error with that cause,
// and late is called when the call returns after all.
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
		if err == nil || plugins.AsRejection(err) != nil {
			return err
		}
		return context.Cause(ctx)
	case <-time.After(grace):
		v.count(tenant, 1)
		close(left)
		return lateError{context.Cause(ctx)}
	}
}

// hangs reports whether an abandoned call for this tenant has not returned.
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

// protected calls a function and returns a panic as an error.
func protected(ctx context.Context, call func(context.Context) error) (err error) {
	defer panics.Recover(&err)
	return call(ctx)
}
