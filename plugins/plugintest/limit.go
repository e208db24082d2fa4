package plugintest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// errLost is the error of a write whose answer was lost: it may have succeeded.
var errLost = errors.New("connection lost")

// limit checks that a validator allows exactly as many copies as its limit,
// before any cache shows them.
func limit(ctx context.Context, v plugins.Validator, c Case) error {
	if c.Limit == 0 {
		return nil
	}
	// Copies that the super cluster rejected do not count.
	rejected := apierrors.NewBadRequest("rejected by the super cluster")
	for i := range c.Limit {
		r := c.request(0, fmt.Sprintf("rejected-%d", i))
		if err := ask(ctx, v, r, func() error { return rejected }); !errors.Is(err, rejected) {
			return fmt.Errorf("no copy is allowed after %d writes that the super cluster rejected: %w", i, err)
		}
	}
	allowed, err := race(ctx, v, c)
	if err != nil {
		return err
	}
	if allowed != c.Limit {
		return fmt.Errorf("%d concurrent writes were allowed, want %d", allowed, c.Limit)
	}
	if err := ask(ctx, v, c.request(1, "other"), written); err != nil {
		return fmt.Errorf("copies of one tenant count for another: %w", err)
	}
	return nil
}

// race runs many more writers than the limit allows. The first allowed writer
// gets no answer.
func race(ctx context.Context, v plugins.Validator, c Case) (int, error) {
	var allowed atomic.Int32
	wrong := make(chan error, 1)
	var all sync.WaitGroup
	for i := range 3*c.Limit + 20 {
		all.Go(func() {
			r := c.request(0, fmt.Sprintf("racing-%d", i))
			err := ask(ctx, v, r, func() error {
				if allowed.Add(1) == 1 {
					return errLost
				}
				r.Object.SetUID(types.UID(r.Object.GetName()))
				r.Object.SetResourceVersion("1")
				return nil
			})
			if err != nil && plugins.AsRejection(err) == nil && !errors.Is(err, errLost) {
				select {
				case wrong <- err:
				default:
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-wrong:
		return 0, fmt.Errorf("validate concurrently: %w", err)
	default:
		return int(allowed.Load()), nil
	}
}
