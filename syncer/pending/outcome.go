package pending

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// State is how a reconcile leaves an object.
type State string

const (
	// Synced objects agree on both sides as far as the syncer can bring it about.
	Synced State = "Synced"
	// BlockedOn objects require another object that does not exist.
	BlockedOn State = "BlockedOn"
	// Rejected objects are not accepted by a policy, a validator or the API of
	// the super cluster until something changes.
	Rejected State = "Rejected"
	// Waiting objects continue when something that is under way has completed.
	Waiting State = "Waiting"
	// InDoubt objects are missing in the tenant, and the syncer does not
	// know that the tenant has deleted them.
	InDoubt State = "InDoubt"
	// Paused objects belong to a tenant whose apiserver does not answer.
	Paused State = "Paused"
	// Failed objects met an error that may pass, and are retried with backoff.
	Failed State = "Failed"
)

// Outcome is the result of reconciling one object.
type Outcome struct {
	State State
	// On is the object that a BlockedOn object requires, what a Waiting object
	// waits for, or what has rejected a Rejected object; empty for other states.
	On string
	// Until is when a Waiting object is expected to continue; zero if unknown.
	Until time.Time
	// Err is the cause, nil for Synced. Except for Failed and Paused, its text is
	// meant for the tenant.
	Err error
	// Denial is set for a Rejected object that validators or limits reject. The
	// change of another object can admit it at any time.
	Denial *plugins.RejectionError
}

// The parties that reject objects, and the reason to wait for a validator.
const (
	byValidator  = "a validator"
	bySuperAPI   = "the super cluster's API"
	byNamesake   = "another object of this name"
	byPolicy     = "a policy of the syncer"
	onValidation = "the validation of another object"
)

// Reason returns the reason of the event on the tenant's object; empty for an
// outcome without an event.
func (o Outcome) Reason() string {
	if o.Denial != nil {
		return o.Denial.Reason
	}
	switch o.State {
	case BlockedOn:
		return "SyncBlocked"
	case Rejected:
		return "SyncRejected"
	case Waiting:
		return "SyncWaiting"
	case InDoubt:
		return "SyncInDoubt"
	case Failed:
		return "SyncFailed"
	case Synced, Paused:
	}
	return ""
}

// failed is what the tenant reads of a failure: the cause concerns the platform
// and may name what is not the tenant's.
const failed = "the super cluster does not take this object for now; the syncer retries it, and an admin of the platform can read the cause"

// Message returns the text of the event on the tenant's object.
func (o Outcome) Message() string {
	if o.State == Failed {
		return failed
	}
	return o.Err.Error()
}

// IsValidation reports whether the object waits for the validation of another
// one, which hands it out again.
func (o Outcome) IsValidation() bool { return o.On == onValidation }

// OutcomeOf returns the outcome of a reconcile that has ended with this error.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Outcome{State: Synced}
	}
	if why, ok := errors.AsType[*BlockedError](err); ok {
		return Outcome{State: BlockedOn, On: why.On, Err: why}
	}
	if why, ok := errors.AsType[*WaitingError](err); ok {
		return Outcome{State: Waiting, On: why.On, Until: why.Until, Err: why}
	}
	if errors.Is(err, queue.ErrNotItsTurn) {
		return Outcome{State: Waiting, On: onValidation, Err: err}
	}
	if errors.Is(err, ErrInDoubt) {
		return Outcome{State: InDoubt, Err: err}
	}
	if why := plugins.AsRejection(err); why != nil {
		return Outcome{State: Rejected, On: byValidator, Err: why, Denial: why}
	}
	if why, ok := errors.AsType[RejectionError](err); ok {
		return Outcome{State: Rejected, On: rejecter(why), Err: why}
	}
	return Outcome{State: Failed, Err: err}
}

// rejecter returns what has rejected an object.
func rejecter(err error) string {
	switch {
	case errors.As(err, new(*validation.FailureError)):
		return byValidator
	case errors.Is(err, guard.ErrForeign):
		return byNamesake
	case errors.As(err, new(apierrors.APIStatus)):
		return bySuperAPI
	}
	return byPolicy
}
