package webhooks

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
)

var (
	// ErrTooMany is that too many calls for a tenant are under way.
	ErrTooMany = errors.New("too many requests of the tenant wait for its webhooks and policies")
	// ErrTooSlow is that a tenant has used the time that its webhooks may take.
	ErrTooSlow = errors.New("the webhooks and policies of the tenant took too much time: they are called again in a moment")
)

// Budget bounds for how long workers of the super cluster, which work for all
// tenants, wait for one of them.
type Budget struct {
	places chan struct{}
	// waiting is the time that is left, in milliseconds.
	waiting *rate.Limiter
}

// NewBudget returns a budget of some calls at a time, which take a share of the
// time, more than one for several workers, and a burst at once.
func NewBudget(places int, share float64, burst time.Duration) *Budget {
	return &Budget{
		places:  make(chan struct{}, places),
		waiting: rate.NewLimiter(rate.Limit(share*float64(time.Second/time.Millisecond)), int(burst/time.Millisecond)),
	}
}

// Begin returns the context of a call, and what ends it. It waits for a place.
func (b *Budget) Begin(ctx context.Context, patience time.Duration) (context.Context, func(), error) {
	if b.left() <= 0 {
		return nil, nil, ErrTooSlow
	}
	if err := b.take(ctx, patience); err != nil {
		return nil, nil, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, min(b.left(), Timeout), ErrTooSlow)
	return ctx, func() {
		cancel()
		<-b.places
		now := time.Now()
		b.waiting.ReserveN(now, min(int(now.Sub(began)/time.Millisecond), b.waiting.Burst()))
	}, nil
}

func (b *Budget) left() time.Duration {
	return time.Duration(b.waiting.TokensAt(time.Now())) * time.Millisecond
}

func (b *Budget) take(ctx context.Context, patience time.Duration) error {
	select {
	case b.places <- struct{}{}:
		return nil
	default:
	}
	full := time.NewTimer(patience)
	defer full.Stop()
	select {
	case b.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-full.C:
		return ErrTooMany
	}
}
