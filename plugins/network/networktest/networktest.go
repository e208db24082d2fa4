// Package networktest checks that a provider of networks fulfils the contract of
// package network. Authors call [Run] from a test, or [Check] from a suite.
package networktest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/internal/contract"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

const (
	// promptly is how long a method may take that waits for nothing.
	promptly = 5 * time.Second
	// defaultPatience is how long a network may take to be made or deleted, and a
	// pod to be prepared or released.
	defaultPatience = time.Minute
	// poll is the interval of calls until an answer is final.
	poll = 20 * time.Millisecond
)

// Case describes a provider to check.
type Case struct {
	// New makes the provider. It is called several times: a later one finds what
	// an earlier one has left, as after a restart of the syncer. One that is a
	// manager.Runnable is started and stopped by the checks; other work in the
	// background ends with the context.
	New func(context.Context) (network.Provider, error)
	// Network returns a network that can be made, each time another one.
	Network func() network.Network
	// Invalid returns one that the tenant has to change; nil if there are none.
	Invalid func() network.Network
	// Passive is that of the registration.
	Passive bool
	// Patience is how long a network or a pod may take; zero for a minute.
	Patience time.Duration
}

// checks are the parts of the contract that a syncer relies on.
func checks() []contract.Check[*bench] {
	return []contract.Check[*bench]{
		contract.Part("makes a network, and keeps it", makes),
		contract.Part("finds it again after a restart", findsAgain),
		contract.Part("keeps tenants apart", keepsApart),
		contract.Part("prepares pods, and keeps what it has prepared", prepares),
		contract.Part("deletes and releases what was never made", deletesNothing),
		contract.Part("returns when the context is done", returns),
		contract.Part("rejects with what the tenant has to change", rejects),
	}
}

// Run checks the contract, each part of it in a subtest. Run it with the race
// detector, to check the provider's goroutines too.
func Run(t *testing.T, c Case) {
	t.Helper()
	contract.Run(t, checks(), c.check)
}

// Check checks the contract, and returns how the provider violates it.
func Check(ctx context.Context, c Case) error {
	return contract.Verify(ctx, checks(), c.check)
}

// check verifies one part of the contract.
func (c Case) check(ctx context.Context, one contract.Check[*bench]) error {
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{Case: c}
	if err := b.restart(ctx); err != nil {
		return err
	}
	return errors.Join(one.Run(ctx, b), b.stop())
}

// bench is a provider under test.
type bench struct {
	Case
	network.Provider

	// stop ends the provider's own work.
	stop func() error
}

// restart makes the provider, after it has stopped an earlier one.
func (b *bench) restart(ctx context.Context) error {
	if b.stop != nil {
		if err := b.stop(); err != nil {
			return err
		}
	}
	working, cancel := context.WithCancel(ctx)
	b.stop = func() error { cancel(); return nil }
	made, err := b.New(working)
	if err == nil && made == nil {
		err = errors.New("it returns no provider")
	}
	if err != nil {
		cancel()
		return fmt.Errorf("call New: %w", err)
	}
	b.Provider = made
	if runnable, works := made.(manager.Runnable); works {
		b.stop = contract.Start(working, cancel, runnable, promptly)
	}
	return nil
}

// called calls a method, which must be prompt and must not change its argument.
func called[T any](method string, of T, clone func(T) T, call func(T) error) error {
	before, began := clone(of), time.Now()
	err := call(of)
	if took := time.Since(began); took > promptly {
		return fmt.Errorf("%s took %s: it must return what there is, and be called again", method, took.Round(time.Millisecond))
	}
	if !reflect.DeepEqual(before, of) {
		return fmt.Errorf("%s has changed what it was called with", method)
	}
	return err
}

func clone(n network.Network) network.Network {
	n.Spec = *n.Spec.DeepCopy()
	return n
}

func clonePod(p network.Pod) network.Pod {
	p.Network = clone(p.Network)
	return p
}

// ensure calls Ensure until the network is ready.
func (b *bench) ensure(ctx context.Context, n network.Network) (state network.State, err error) {
	err = b.until(ctx, func() (bool, error) {
		err := called("Ensure", n, clone, func(n network.Network) (err error) { state, err = b.Ensure(ctx, n); return err })
		return state.Ready && err == nil, err
	})
	if err != nil {
		return state, fmt.Errorf("network %s of tenant %s is not ready (%q): %w", n.Name, n.Tenant.Key, state.Message, err)
	}
	return state, nil
}

// remove calls Delete until nothing is left.
func (b *bench) remove(ctx context.Context, n network.Network) error {
	err := b.until(ctx, func() (gone bool, err error) {
		err = called("Delete", n, clone, func(n network.Network) (err error) { gone, err = b.Delete(ctx, n); return err })
		return gone && err == nil, err
	})
	if err != nil {
		return fmt.Errorf("network %s of tenant %s is not deleted: %w", n.Name, n.Tenant.Key, err)
	}
	return nil
}

// prepare calls PreparePod until the pod is ready.
func (b *bench) prepare(ctx context.Context, pod network.Pod) (a network.Attachment, err error) {
	err = b.until(ctx, func() (bool, error) {
		err := called("PreparePod", pod, clonePod, func(p network.Pod) (err error) { a, err = b.PreparePod(ctx, p); return err })
		return a.Ready && err == nil, err
	})
	if err != nil {
		return a, fmt.Errorf("pod %s is not prepared (%q): %w", pod.Name, a.Message, err)
	}
	return a, nil
}

// release calls ReleasePod until nothing is left.
func (b *bench) release(ctx context.Context, pod network.Pod) error {
	err := b.until(ctx, func() (gone bool, err error) {
		err = called("ReleasePod", pod, clonePod, func(p network.Pod) (err error) { gone, err = b.ReleasePod(ctx, p); return err })
		return gone && err == nil, err
	})
	if err != nil {
		return fmt.Errorf("pod %s is not released: %w", pod.Name, err)
	}
	return nil
}

// until repeats a call at an interval. An error is retried, as a syncer does, but
// a rejection.
func (b *bench) until(ctx context.Context, call func() (done bool, err error)) error {
	final := func(err error) bool { return plugins.AsRejection(err) != nil }
	return contract.Patience{Limit: b.Patience, Interval: poll, Final: final}.Until(ctx, call)
}
