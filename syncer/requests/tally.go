package requests

import (
	"context"
	"sync/atomic"
)

// Tally counts the requests that are sent with a context.
type Tally struct{ super, tenant atomic.Int64 }

// tallyKey is the key of the tally in a context.
type tallyKey struct{}

// Tallied returns a context and the tally of its requests, as far as a
// [Counter] counts them.
func Tallied(ctx context.Context) (context.Context, *Tally) {
	t := &Tally{}
	return context.WithValue(ctx, tallyKey{}, t), t
}

// To returns the number of requests that were sent to a side so far.
func (t *Tally) To(side string) int { return int(t.of(side).Load()) }

func (t *Tally) of(side string) *atomic.Int64 {
	if side == Super {
		return &t.super
	}
	return &t.tenant
}

// tally counts a request.
func tally(ctx context.Context, side string) {
	if t, ok := ctx.Value(tallyKey{}).(*Tally); ok {
		t.of(side).Add(1)
	}
}
