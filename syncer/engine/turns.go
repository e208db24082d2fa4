package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// beginners is how many tenants open their watches at a time. If all did at
	// once, as when a syncer starts, they would be ready together, and late.
	beginners = 8
	// turnTime is how long a tenant keeps others from theirs, so that one that
	// hangs does not for long.
	turnTime = time.Second
)

// turns lets a number of tenants work at a time, each for turnTime at most. One
// that needs longer continues beside them.
type turns chan struct{}

func newTurns(n int) turns { return make(turns, n) }

// take waits for a turn. The turn ends when the returned function is called.
func (t turns) take(ctx context.Context) (giveBack func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	end := sync.OnceFunc(func() { <-t })
	timer := time.AfterFunc(turnTime, end)
	return func() {
		timer.Stop()
		end()
	}, nil
}
