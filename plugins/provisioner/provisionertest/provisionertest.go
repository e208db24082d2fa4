// Package provisionertest checks that a provisioner fulfils the contract of
// package provisioner. Authors call [Run] from a test, or [Check] from a suite.
package provisionertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/internal/contract"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	// promptly is how long a method may take that waits for nothing.
	promptly = 20 * time.Second
	// defaultPatience is how long a control plane may take to start, and to be
	// deleted.
	defaultPatience = 2 * time.Minute
	// poll is the interval of calls until a control plane is ready or gone.
	poll = 50 * time.Millisecond
)

// Case describes a provisioner to check.
type Case struct {
	// New makes the provisioner. It is called several times: a later one finds
	// what an earlier one has left, as after a restart of the manager. One that
	// is a manager.Runnable is started and stopped by the checks; other work in
	// the background ends with the context.
	New func(context.Context) (provisioner.Provisioner, error)
	// VirtualCluster returns a VirtualCluster for a control plane that starts,
	// each time another one: with a UID, and a root namespace in the status that
	// exists.
	VirtualCluster func(context.Context) (*tenancyv1alpha1.VirtualCluster, error)
	// Invalid returns one whose control plane cannot be started until an admin
	// changes something; nil if there are none.
	Invalid func(context.Context) (*tenancyv1alpha1.VirtualCluster, error)
	// Patience is how long a control plane may take to start, and to be deleted;
	// zero for two minutes.
	Patience time.Duration
}

// checks are the parts of the contract that a manager relies on.
func checks() []contract.Check[*bench] {
	return []contract.Check[*bench]{
		contract.Part("declares the same capabilities at every call", declares),
		contract.Part("starts a control plane, and keeps it", starts),
		contract.Part("finds it again after a restart", findsAgain),
		contract.Part("runs two apart from each other", runsTwo),
		contract.Part("deletes until nothing is left", deletes),
		contract.Part("returns when the context is done", returns),
		contract.Part("fails with what an admin has to change", fails),
	}
}

// Run checks the contract, each part of it in a subtest. Run it with the race
// detector, to check the provisioner's goroutines too.
func Run(t *testing.T, c Case) {
	t.Helper()
	contract.Run(t, checks(), c.check)
}

// Check checks the contract, and returns how the provisioner violates it.
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
	return errors.Join(one.Run(ctx, b), b.deleteAll(ctx), b.stop())
}

// bench is a provisioner under test, and the VirtualClusters that it was given.
type bench struct {
	Case
	provisioner.Provisioner

	given []*tenancyv1alpha1.VirtualCluster
	// stop ends the provisioner's own work.
	stop func() error
}

// restart makes the provisioner, after it has stopped an earlier one.
func (b *bench) restart(ctx context.Context) error {
	if b.stop != nil {
		if err := b.stop(); err != nil {
			return err
		}
	}
	working, cancel := context.WithCancel(ctx)
	b.stop = func() error {
		cancel()
		return nil
	}
	made, err := b.New(working)
	if err == nil && made == nil {
		err = errors.New("it returns no provisioner")
	}
	if err != nil {
		cancel()
		return fmt.Errorf("call New: %w", err)
	}
	b.Provisioner = made
	if notifier, notifies := made.(provisioner.Notifier); notifies {
		go drain(working, notifier.Events())
	}
	if runnable, works := made.(manager.Runnable); works {
		b.stop = contract.Start(working, cancel, runnable, promptly)
	}
	return nil
}

// virtualCluster returns another VirtualCluster. Its control plane is deleted
// after the check.
func (b *bench) virtualCluster(ctx context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
	vc, err := b.VirtualCluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("VirtualCluster: %w", err)
	}
	if vc.UID == "" || vc.Status.ClusterNamespace == "" {
		return nil, errors.New("VirtualCluster: it has no UID or no status.clusterNamespace")
	}
	b.given = append(b.given, vc)
	return vc, nil
}

// ensure calls Ensure, which must wait for nothing and change nothing.
func (b *bench) ensure(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (state provisioner.ControlPlane, err error) {
	wrong := unchanged("Ensure", vc, func() { state, err = b.Ensure(ctx, vc) })
	if wrong != nil {
		return state, wrong
	}
	return state, err
}

// remove calls Delete, which must wait for nothing and change nothing.
func (b *bench) remove(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error) {
	wrong := unchanged("Delete", vc, func() { gone, err = b.Delete(ctx, vc) })
	if wrong != nil {
		return false, wrong
	}
	return gone, err
}

// unchanged calls a method and checks that it was prompt and left the
// VirtualCluster as it was.
func unchanged(method string, vc *tenancyv1alpha1.VirtualCluster, call func()) error {
	before, began := vc.DeepCopy(), time.Now()
	call()
	if took := time.Since(began); took > promptly {
		return fmt.Errorf("%s took %s: it must return what there is, and be called again", method, took.Round(time.Millisecond))
	}
	if !equality.Semantic.DeepEqual(before, vc) {
		return fmt.Errorf("%s has changed the VirtualCluster", method)
	}
	return nil
}

// start calls Ensure until the control plane is ready.
func (b *bench) start(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (provisioner.ControlPlane, error) {
	var state provisioner.ControlPlane
	err := b.until(ctx, func() (done bool, err error) {
		state, err = b.ensure(ctx, vc)
		return state.Ready, err
	})
	if err != nil {
		return state, fmt.Errorf("the control plane is not ready (%q): %w", state.Message, err)
	}
	return state, validate(state)
}

// delete calls Delete until nothing is left.
func (b *bench) delete(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	if err := b.until(ctx, func() (bool, error) { return b.remove(ctx, vc) }); err != nil {
		return fmt.Errorf("the control plane is not deleted: %w", err)
	}
	return nil
}

// deleteAll deletes what the check has left.
func (b *bench) deleteAll(ctx context.Context) error {
	wrong := make([]error, 0, len(b.given))
	for _, vc := range b.given {
		wrong = append(wrong, b.delete(ctx, vc))
	}
	return errors.Join(wrong...)
}

// until repeats a call at an interval. An error is retried, as a manager does,
// but a Failure.
func (b *bench) until(ctx context.Context, call func() (done bool, err error)) error {
	final := func(err error) bool { return provisioner.AsFailure(err) != nil }
	return contract.Patience{Limit: b.Patience, Interval: poll, Final: final}.Until(ctx, call)
}

// drain reads events, whose senders wait for a reader.
func drain(ctx context.Context, events <-chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]) {
	for {
		select {
		case <-events:
		case <-ctx.Done():
			return
		}
	}
}
