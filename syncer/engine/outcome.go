package engine

import (
	"context"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/deletion"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// outcomes records the outcomes of reconciles, and tells the tenant of those
// that last.
type outcomes struct {
	*session.Session

	denials denialShower
	turn    *queue.Turn
	// retries is how often denied objects were retried because something had
	// changed.
	retries atomic.Int64
}

// denialShower shows a tenant why an object has no copy.
type denialShower interface {
	// ShowDenial writes the reason into the status of the object.
	ShowDenial(ctx context.Context, k *kinds.Kind, key client.ObjectKey, why *plugins.RejectionError) error
}

// of returns the outcome of a reconcile that has ended with this error.
func (s *outcomes) of(err error) pending.Outcome {
	o := pending.OutcomeOf(err)
	if o.State == pending.Failed && !s.Cluster.Healthy() {
		o.State = pending.Paused
	}
	return o
}

// conclude records the outcome of a reconcile, tells the tenant of one that
// lasts, and returns when the object is reconciled again. Retries is how often
// the tenant's denied objects had been retried when the reconcile began.
func (s *outcomes) conclude(
	ctx context.Context, k *kinds.Kind, key client.ObjectKey, o pending.Outcome, retries int64,
) (reconcile.Result, error) {
	entry := s.Pending.Record(k.Name, key, o, time.Now())
	switch o.State {
	case pending.Synced:
		return reconcile.Result{}, nil
	case pending.Failed, pending.Paused:
		s.tellFailure(ctx, k, key, o, entry)
		return reconcile.Result{}, o.Err
	case pending.InDoubt:
		_, err := s.tellLater(ctx, k, key, o, entry)
		return reconcile.Result{RequeueAfter: deletion.RetryInDoubt}, err
	case pending.BlockedOn, pending.Waiting:
		if o.IsValidation() {
			s.turn.Wait(s.Request(k, key))
			return reconcile.Result{}, nil
		}
		after, err := s.tellLater(ctx, k, key, o, entry)
		return reconcile.Result{RequeueAfter: after}, err
	case pending.Rejected:
	}
	if o.Denial != nil {
		return reconcile.Result{}, s.deny(ctx, k, key, o, entry, retries)
	}
	return reconcile.Result{RequeueAfter: entry.Retry}, s.tell(ctx, k, key, o)
}

// deny tells the tenant why validators or limits reject an object, if that is
// news. The object is retried when what they depend on changes: if that has
// happened since the reconcile began, the object was not among those retried.
func (s *outcomes) deny(
	ctx context.Context, k *kinds.Kind, key client.ObjectKey, o pending.Outcome, entry pending.Entry, retries int64,
) error {
	if s.retries.Load() != retries {
		s.Enqueue(s.Request(k, key), queue.PriorityNormal)
	}
	if entry.Told == o.Message() {
		return nil
	}
	if err := s.denials.ShowDenial(ctx, k, key, o.Denial); err != nil {
		return err
	}
	return s.tell(ctx, k, key, o)
}

// tellLater tells the tenant of an outcome that has lasted for
// [pending.TellAfter], once for each message. Before that, it returns how much
// time is left; zero afterwards.
func (s *outcomes) tellLater(
	ctx context.Context, k *kinds.Kind, key client.ObjectKey, o pending.Outcome, entry pending.Entry,
) (left time.Duration, err error) {
	if left := pending.TellAfter - time.Since(entry.Since); left > 0 {
		return left, nil
	}
	if entry.Told == o.Message() {
		return 0, nil
	}
	return 0, s.tell(ctx, k, key, o)
}

// tellFailure tells the tenant of a failure that lasts. The failure itself is
// what the queue retries and the log has, so that of telling is only logged.
func (s *outcomes) tellFailure(ctx context.Context, k *kinds.Kind, key client.ObjectKey, o pending.Outcome, entry pending.Entry) {
	if o.State == pending.Paused {
		return
	}
	if _, err := s.tellLater(ctx, k, key, o, entry); err != nil {
		log.FromContext(ctx).V(1).Info("Cannot report a failure to the tenant", "cause", err.Error())
	}
}

// tell creates an event about an outcome on the tenant's object, if that exists.
func (s *outcomes) tell(ctx context.Context, k *kinds.Kind, key client.ObjectKey, o pending.Outcome) error {
	obj, err := s.TenantObject(ctx, k, key)
	if err != nil || obj == nil {
		return err
	}
	if err := s.Report(ctx, obj, o.Reason(), s.Identity().Text(o.Message(), key.Namespace)); err != nil {
		return err
	}
	s.Pending.Tell(k.Name, key, o.Message())
	return nil
}

// retry retries the denied objects, because something has changed that may admit
// them.
func (s *outcomes) retry() {
	s.retries.Add(1)
	s.EnqueuePending(isDenied, queue.PriorityNormal)
}

// isDenied reports whether validators or limits reject an object.
func isDenied(e pending.Entry) bool { return e.Denied }
