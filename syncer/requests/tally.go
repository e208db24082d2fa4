package requests

import (
	"context"
	"sync/atomic"
)

// Tally counts the requests that are sent with a context.
type Tally struct{ super, tenant atomic.Int64 }

// tallyKey is where a context has its tally.
type tallyKey struct{}

// Tallied returns a context and the tally of the requests that are sent with it, of those that a [Counter] counts.
func Tallied(ctx context.Context) (context.Context, *Tally) {
	t := &Tally{}
	return context.WithValue(ctx, tallyKey{}, t), t
}

// To is how many requests were sent to a side until now.
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
