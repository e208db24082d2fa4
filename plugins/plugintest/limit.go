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

// errLost is the end of a write whose answer was lost: it may have been done.
var errLost = errors.New("connection lost")

// limit checks that no more is allowed than may be, and no less, while no cache shows anything of it yet.
func limit(ctx context.Context, v plugins.Validator, c Case) error {
	if c.Limit == 0 {
		return nil
	}
	// What the super cluster has refused takes no room.
	refused := apierrors.NewBadRequest("the super cluster does not have it")
	for i := range c.Limit {
		r := c.request(0, fmt.Sprintf("refused-%d", i))
		if err := ask(ctx, v, r, func() error { return refused }); !errors.Is(err, refused) {
			return fmt.Errorf("after %d writes that the super cluster refused, there is no room: %w", i, err)
		}
	}
	allowed, err := race(ctx, v, c)
	if err != nil {
		return err
	}
	if allowed != c.Limit {
		return fmt.Errorf("%d were allowed to those who raced, and %d may be", allowed, c.Limit)
	}
	if err := ask(ctx, v, c.request(1, "other"), written); err != nil {
		return fmt.Errorf("what one tenant has counts for another: %w", err)
	}
	return nil
}

// race has many more writers than there is room for. The first that is let through gets no answer.
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
			if err != nil && !isRejection(err) && !errors.Is(err, errLost) {
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
		return 0, fmt.Errorf("while many race: %w", err)
	default:
		return int(allowed.Load()), nil
	}
}
