package admission

import (
	"context"
	"errors"
	"time"

	"github.com/virtualcluster/virtualcluster/gateway/convert/webhooks"
)

const (
	// evaluations is how many requests of a tenant are evaluated at a time, and
	// queueing how long one more waits.
	evaluations = 16
	queueing    = 2 * time.Second
	// Controllers of the super cluster work for all tenants, so that one worker
	// waits for a tenant's webhooks only for a part of the time: controllerShare of
	// it, and controllerBurst at once.
	controllerShare = 0.2
	controllerBurst = 5 * time.Second
	controllerMost  = 2
)

var errTimedOut = errors.New("the webhooks and policies of the tenant took too long")

// limits keep the evaluations of one tenant from taking what others need.
type limits struct {
	users chan struct{}
	// controllers is for calls with objects in the form of the request, and
	// converted for those in other forms, which come at the same time.
	controllers, converted *webhooks.Budget
}

func newLimits() *limits {
	return &limits{users: make(chan struct{}, evaluations), controllers: newControllerBudget(), converted: newControllerBudget()}
}

func newControllerBudget() *webhooks.Budget {
	return webhooks.NewBudget(controllerMost, controllerShare, controllerBurst)
}

// begin returns the context of an evaluation, and what ends it.
func (l *limits) begin(ctx context.Context, who requesterKind, converted bool) (context.Context, func(), error) {
	switch { // the worker of a controller would wait for a place
	case who == controller && converted:
		return l.converted.Begin(ctx, 0)
	case who == controller:
		return l.controllers.Begin(ctx, 0)
	}
	full := time.NewTimer(queueing)
	defer full.Stop()
	select {
	case l.users <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-full.C:
		return nil, nil, webhooks.ErrTooMany
	}
	ctx, cancel := context.WithTimeoutCause(ctx, webhooks.Timeout, errTimedOut)
	return ctx, func() {
		cancel()
		<-l.users
	}, nil
}
