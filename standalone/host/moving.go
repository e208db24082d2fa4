package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/transfer"
)

const (
	// transferTimeout limits how long a control plane is stopped for a move.
	transferTimeout = 5 * time.Minute
	// prepareTimeout limits the preparation of a store.
	prepareTimeout = 30 * time.Minute
	// remainderLife is how long data that is not used any more is kept: as long
	// as a replica that was suspended needs to notice the move.
	remainderLife = 2 * time.Minute
)

// errOutdated means that the object does not ask for this move any more, or that
// another replica moves the data.
var errOutdated = errors.New("the HostedControlPlane has changed")

// isMoving reports whether the data of a control plane moves, or is to move.
func isMoving(plane *tenancyv1alpha1.HostedControlPlane) bool {
	return plane.Status.Move != nil || plane.DataStore() != plane.Spec.Store
}

// advance does the next step of a move, and reports whether the control plane is to
// run where its data is. The object is up to date.
func (r *controlPlanes) advance(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, vc *tenancyv1alpha1.VirtualCluster,
) (runs bool, again time.Duration, err error) {
	key := client.ObjectKeyFromObject(plane)
	at, delay := r.moves.look(key, plane.Spec.Store)
	if at == idle && plane.Status.Move != nil { // it was interrupted
		if err := r.correct(ctx, plane); err != nil {
			return false, 0, err
		}
	}
	from, connectedFrom := r.stores.get(plane.DataStore())
	to, connectedTo := r.stores.get(plane.Spec.Store)
	next := decide(situation{
		at: plane.DataStore(), want: plane.Spec.Store, stoppedFor: stoppedFor(plane),
		connected: connectedTo, deferred: delay > 0, stage: at,
	})
	if !connectedFrom { // the status says so
		return next != await, delay, nil
	}
	switch next {
	case await:
		return false, 0, nil
	case prepare:
		r.moves.begin(key, plane.Spec.Store, preparing, func(ctx context.Context) stage {
			return r.prepare(ctx, plane, from, to)
		}, r.again(plane))
	case transferData:
		sleeps := meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
		r.moves.begin(key, plane.Spec.Store, transferring, func(ctx context.Context) stage {
			return r.transfer(ctx, plane, from, to, sleeps)
		}, r.again(plane))
		return false, 0, nil
	case reopen:
		return true, delay, r.reopen(ctx, plane, from)
	case serve:
		if plane.DataStore() != plane.Spec.Store && !connectedTo {
			err = r.explain(ctx, key, tenancyv1alpha1.ReasonStoreUnreachable, fmt.Sprintf(
				"The replica is not connected to ControlPlaneStore %s: see its conditions", plane.Spec.Store))
			delay = refusedRetry
		}
	}
	return true, delay, err
}

// again returns a function that has a control plane reconciled.
func (r *controlPlanes) again(plane *tenancyv1alpha1.HostedControlPlane) func() {
	return func() {
		select {
		case r.requests <- event.TypedGenericEvent[*tenancyv1alpha1.HostedControlPlane]{Object: plane}:
		case <-r.moves.ctx.Done():
		}
	}
}

// prepare prepares a store for the data of a control plane, which runs meanwhile.
func (r *controlPlanes) prepare(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, from, to *store) stage {
	bounded, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	key := client.ObjectKeyFromObject(plane)
	var err error
	if !r.moves.refused(key) { // or the condition would change with each attempt
		err = r.explain(ctx, key, tenancyv1alpha1.ReasonMoving, fmt.Sprintf("ControlPlaneStore %s is prepared for the data", plane.Spec.Store))
	}
	if err == nil {
		begun := time.Now()
		err = from.host.PrepareMove(bounded, plane.Namespace, to.host)
		r.moves.measured.step(ctx, stepPrepare, begun, err)
	}
	switch {
	case err == nil:
		return prepared
	case ctx.Err() != nil: // it was stopped
		return idle
	}
	r.moves.refuse(key)
	r.explainFailure(ctx, plane, err)
	return idle
}

// explainFailure reports why data was not moved, as far as that is possible.
func (r *controlPlanes) explainFailure(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, failed error) {
	logger := r.log.WithValues("controlPlane", plane.Namespace, "from", plane.DataStore(), "to", plane.Spec.Store)
	logger.Error(failed, "Data is not moved")
	reason, message := refusal(plane, failed)
	if err := r.explain(ctx, client.ObjectKeyFromObject(plane), reason, message); err != nil && ctx.Err() == nil {
		logger.Error(err, "Cannot report why data is not moved")
	}
}

// refusal returns the reason and the message of the condition Moved for data that
// was not moved.
func refusal(plane *tenancyv1alpha1.HostedControlPlane, err error) (reason, message string) {
	where := "ControlPlaneStore " + plane.Spec.Store
	stays := ". The data stays in " + plane.DataStore() + ", and the move is retried"
	reason = reasonOf(err)
	switch reason {
	case tenancyv1alpha1.ReasonStoreBehind:
		if _, far := errors.AsType[*transfer.FarBehindError](err); far {
			stays = "; restore a snapshot of it with etcdutl snapshot restore --bump-revision --mark-compacted" + stays
		}
		return reason, where + " is behind: " + err.Error() + stays
	case tenancyv1alpha1.ReasonStoreFull:
		return reason, where + " has no room: " + err.Error() + stays
	}
	return reason, "move to " + where + ": " + err.Error() + stays
}

// reasonOf returns why data was not moved.
func reasonOf(err error) string {
	_, farBehind := errors.AsType[*transfer.FarBehindError](err)
	_, noRoom := errors.AsType[*hosted.NoRoomError](err)
	switch {
	case farBehind, errors.Is(err, transfer.ErrOutrun):
		return tenancyv1alpha1.ReasonStoreBehind
	case noRoom, errors.Is(err, rpctypes.ErrNoSpace):
		return tenancyv1alpha1.ReasonStoreFull
	}
	return tenancyv1alpha1.ReasonMoveFailed
}

// transfer stops a control plane, copies its data and switches to the copy. If
// that fails, writes to the data are allowed again.
func (r *controlPlanes) transfer(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, from, to *store, sleeps bool) stage {
	key := client.ObjectKeyFromObject(plane)
	logger := r.log.WithValues("controlPlane", plane.Namespace, "from", plane.DataStore(), "to", plane.Spec.Store)
	bounded, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	begin := time.Now()
	attempt, err := r.claim(bounded, plane, beginMove, from, to)
	switch {
	case err == nil:
	case ctx.Err() != nil, errors.Is(err, errOutdated):
		return idle
	default:
		r.moves.fail(key)
		r.explainFailure(ctx, plane, err)
		return idle
	}
	copied, err := r.copyData(bounded, plane, from, to, attempt, sleeps)
	r.moves.measured.step(ctx, stepCopy, begin, err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return idle
	case errors.Is(err, transfer.ErrSuperseded), errors.Is(err, transfer.ErrInUse):
		r.moves.fail(key) // another replica continues, or the data has been moved
		return idle
	default:
		r.moves.fail(key)
		r.explainFailure(ctx, plane, err)
		return r.allow(ctx, plane, from, attempt)
	}
	if err := r.switchStore(ctx, plane, attempt); err != nil {
		logger.Error(err, "Cannot record that data was moved") // or that was recorded
		return idle
	}
	r.moves.measured.bytes.Add(float64(copied.Bytes))
	logger.Info("Moved data", "records", copied.Records, "bytes", copied.Bytes, "seconds", time.Since(begin).Seconds())
	if sleeps {
		from.host.CloseRoute(plane.Namespace) // requests that waited are repeated
	}
	return r.allow(ctx, plane, to, attempt)
}

// copyData stops a control plane and copies its data.
func (r *controlPlanes) copyData(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, from, to *store, attempt int64, sleeps bool,
) (transfer.Sum, error) {
	if err := from.planes.Leave(ctx, plane.Namespace, sleeps); err != nil {
		return transfer.Sum{}, err
	}
	return from.host.Move(ctx, plane.Namespace, to.host, attempt)
}

// allow allows writes to the data in a store. If that fails, it is repeated with
// another attempt.
func (r *controlPlanes) allow(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, in *store, attempt int64) stage {
	if err := in.host.Reopen(ctx, plane.Namespace, attempt); err != nil {
		r.log.Error(err, "Cannot use data after a move", "controlPlane", plane.Namespace)
		return idle
	}
	return opened
}

// reopen allows writes to the data after a move that has ended in between.
func (r *controlPlanes) reopen(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, in *store) error {
	attempt, err := r.claim(ctx, plane, func(*tenancyv1alpha1.HostedControlPlane) {}, in)
	if err != nil {
		return err
	}
	if err := in.host.Reopen(ctx, plane.Namespace, attempt); err != nil {
		return err
	}
	r.moves.set(client.ObjectKeyFromObject(plane), plane.Spec.Store, opened)
	return nil
}

// claim records that this replica moves the data between stores, or ends a move,
// and returns the number of its attempt: later than all that these stores and the
// status know. The function changes the status with it.
func (r *controlPlanes) claim(
	ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, change func(*tenancyv1alpha1.HostedControlPlane), between ...*store,
) (attempt int64, err error) {
	var last int64
	for _, each := range between {
		of, err := each.host.DataState(ctx, plane.Namespace)
		if err != nil {
			return 0, err
		}
		last = max(last, of.Attempt)
	}
	at, want := plane.DataStore(), plane.Spec.Store
	err = r.updateStatus(ctx, client.ObjectKeyFromObject(plane), func(fresh *tenancyv1alpha1.HostedControlPlane) error {
		if fresh.UID != plane.UID || fresh.DataStore() != at || fresh.Spec.Store != want {
			return errOutdated
		}
		status := &fresh.Status
		status.Store, status.Host, status.HostAddress = at, r.replica, r.address
		status.Attempt = max(status.Attempt, last) + 1
		attempt = status.Attempt
		change(fresh)
		return nil
	})
	return attempt, err
}

// beginMove records that the control plane is stopped for a move.
func beginMove(plane *tenancyv1alpha1.HostedControlPlane) {
	status, want, now := &plane.Status, plane.Spec.Store, metav1.Now()
	if interrupted := stoppedFor(plane); interrupted != "" && interrupted != status.Store && interrupted != want {
		leave(status, interrupted, now)
	}
	forget(status, want)
	status.Move = &tenancyv1alpha1.HostedControlPlaneMove{To: want, StartTime: now}
	setCondition(&status.Conditions, observed(status), tenancyv1alpha1.ConditionMoved, false, tenancyv1alpha1.ReasonMoving,
		fmt.Sprintf("The data is copied from ControlPlaneStore %s to %s, and the control plane is stopped", status.Store, want))
}

// leave records that a store has data that is not used any more.
func leave(status *tenancyv1alpha1.HostedControlPlaneStatus, store string, now metav1.Time) {
	forget(status, store)
	status.Remainders = append(status.Remainders, tenancyv1alpha1.HostedControlPlaneRemainder{Store: store, Since: now})
}

// forget records that a store has no data that is not used.
func forget(status *tenancyv1alpha1.HostedControlPlaneStatus, store string) {
	status.Remainders = slices.DeleteFunc(status.Remainders, func(of tenancyv1alpha1.HostedControlPlaneRemainder) bool {
		return of.Store == store
	})
}

// switchStore records that the data is in the new store, if this is still the last
// attempt and the spec still names that store. It is the one write that decides
// which store has the data.
func (r *controlPlanes) switchStore(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane, attempt int64) error {
	at, to := plane.DataStore(), plane.Spec.Store
	return r.updateStatus(ctx, client.ObjectKeyFromObject(plane), func(fresh *tenancyv1alpha1.HostedControlPlane) error {
		status := &fresh.Status
		if fresh.UID != plane.UID || status.Attempt != attempt || status.Move == nil || status.Move.To != to || fresh.Spec.Store != to {
			return errOutdated
		}
		leave(status, at, metav1.Now())
		status.Store = to
		return nil
	})
}

// explain reports how far a move is.
func (r *controlPlanes) explain(ctx context.Context, key types.NamespacedName, reason, message string) error {
	return r.updateStatus(ctx, key, func(fresh *tenancyv1alpha1.HostedControlPlane) error {
		setCondition(&fresh.Status.Conditions, observed(&fresh.Status), tenancyv1alpha1.ConditionMoved, false, reason, message)
		return nil
	})
}

// observed returns the generation of the VirtualCluster that was observed last.
func observed(status *tenancyv1alpha1.HostedControlPlaneStatus) int64 {
	if ready := meta.FindStatusCondition(status.Conditions, tenancyv1alpha1.ConditionReady); ready != nil {
		return ready.ObservedGeneration
	}
	return 0
}

// updateStatus changes the latest status.
func (r *controlPlanes) updateStatus(
	ctx context.Context, key types.NamespacedName, change func(*tenancyv1alpha1.HostedControlPlane) error,
) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		fresh := &tenancyv1alpha1.HostedControlPlane{}
		if err := r.live.Get(ctx, key, fresh); err != nil {
			return err
		}
		before := fresh.DeepCopy()
		if err := change(fresh); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(before.Status, fresh.Status) {
			return nil
		}
		return r.Status().Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(name))
	})
	if err != nil {
		return fmt.Errorf("write the move of HostedControlPlane %s: %w", key, err)
	}
	return nil
}

// deleteRemainders deletes data in stores that the control plane has left some
// time ago, and returns when to do so again. The control plane does not depend on
// those stores. The object is up to date.
func (r *controlPlanes) deleteRemainders(ctx context.Context, plane *tenancyv1alpha1.HostedControlPlane) (again time.Duration, err error) {
	for _, each := range plane.Status.Remainders {
		if left := time.Until(each.Since.Add(remainderLife)); left > 0 {
			again = earliest(again, left)
			continue
		}
		in, connected := r.stores.get(each.Store)
		switch {
		case each.Store == plane.DataStore():
		case each.Store == plane.Spec.Store: // the move to it clears it
			continue
		case !connected:
			again = earliest(again, refusedRetry)
			continue
		default:
			if err := in.host.Clear(ctx, plane.Namespace, plane.Status.Attempt); err != nil {
				r.log.Error(err, "Cannot delete data that was moved away, will retry", "controlPlane", plane.Namespace, "store", each.Store)
				again = earliest(again, refusedRetry)
				continue
			}
		}
		err := r.updateStatus(ctx, client.ObjectKeyFromObject(plane), func(fresh *tenancyv1alpha1.HostedControlPlane) error {
			forget(&fresh.Status, each.Store)
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return again, nil
}
