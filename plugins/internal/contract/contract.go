// Package contract runs the checks by which authors hold plugins against their
// contracts.
package contract

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Check is one part of a contract. Run returns how a plugin violates it, of which
// B is what the check needs.
type Check[B any] struct {
	Name string
	Run  func(context.Context, B) error
}

// Part returns a check with a name, which says what a plugin does that fulfils it.
func Part[B any](name string, run func(context.Context, B) error) Check[B] {
	return Check[B]{Name: name, Run: run}
}

// Run verifies each check in a subtest.
func Run[B any](t *testing.T, checks []Check[B], verify func(context.Context, Check[B]) error) {
	t.Helper()
	for _, one := range checks {
		t.Run(one.Name, func(t *testing.T) {
			if err := verify(t.Context(), one); err != nil {
				t.Error(err)
			}
		})
	}
}

// Verify verifies all checks, and returns what is violated.
func Verify[B any](ctx context.Context, checks []Check[B], verify func(context.Context, Check[B]) error) error {
	var wrong []error
	for _, one := range checks {
		if err := verify(ctx, one); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", one.Name, err))
		}
	}
	return errors.Join(wrong...)
}

// Start starts a runnable, and returns what stops it by cancel. It has to end
// within the time limit then.
func Start(ctx context.Context, cancel func(), runnable manager.Runnable, limit time.Duration) (stop func() error) {
	ended := make(chan error, 1)
	go func() { ended <- runnable.Start(ctx) }()
	return func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- err
			if err != nil {
				err = fmt.Errorf("Start: %w", err)
			}
			return err
		case <-time.After(limit):
			return errors.New("Start does not return when its context is done")
		}
	}
}

// Patience is how long, and how often, a call is repeated.
type Patience struct {
	Limit, Interval time.Duration
	// Final reports whether an error is not retried.
	Final func(error) bool
}

// Until repeats a call until it is done or fails for good. Other errors are
// retried, as the caller of a plugin does.
func (p Patience) Until(ctx context.Context, call func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	for {
		done, err := call()
		if done || p.Final(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("after %s", p.Limit), err)
		case <-time.After(p.Interval):
		}
	}
}
