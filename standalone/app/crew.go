package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// crew is what runs beside each other and stops together.
type crew struct {
	ctx  context.Context
	fail context.CancelCauseFunc
	work sync.WaitGroup
}

// newCrew makes a crew whose members stop when ctx ends, or when one of them
// fails.
func newCrew(ctx context.Context) *crew {
	c := &crew{}
	c.ctx, c.fail = context.WithCancelCause(ctx)
	return c
}

// run adds a member. It runs until its context ends; if it ends before that, it
// has failed.
func (c *crew) run(member string, work func(context.Context) error) {
	c.work.Go(func() {
		err := work(c.ctx)
		switch {
		case c.ctx.Err() != nil:
		case err != nil:
			c.fail(fmt.Errorf("%s failed: %w", member, err))
		default:
			c.fail(fmt.Errorf("%s ended by itself", member))
		}
	})
}

// stop ends all members and waits for them until ctx ends.
func (c *crew) stop(ctx context.Context) error {
	c.fail(context.Canceled)
	stopped := make(chan struct{})
	go func() { // ends when the last member does
		c.work.Wait()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return errors.New("manager, syncer or nodes are still stopping")
	}
}

// failure returns the reason why the crew had to stop; nil after a regular
// stop.
func failure(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
