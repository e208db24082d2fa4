package pending

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// seen is what the tenant, the admin and the metrics see of an outcome.
type seen struct {
	State               State
	On, Reason, Message string
	Until               time.Time
	Denied              bool
}

func TestOutcomeOf(t *testing.T) {
	pods, later := schema.GroupResource{Resource: "pods"}, time.Unix(200, 0)
	full := &plugins.RejectionError{Reason: "LimitExceeded", Message: "no more than 2 pods"}
	for name, tc := range map[string]struct {
		err  error
		want seen
	}{
		"synced": {nil, seen{State: Synced}},
		"blocked": {
			fmt.Errorf("create the copy: %w", &BlockedError{On: "PersistentVolumeClaim data"}),
			seen{BlockedOn, "PersistentVolumeClaim data", "SyncBlocked",
				"blocked on PersistentVolumeClaim data, which does not exist or is not synced yet", time.Time{}, false},
		},
		"rejected by the API": {
			Classify(apierrors.NewForbidden(pods, "web", errors.New("exceeded quota"))),
			seen{Rejected, "the super cluster's API", "SyncRejected", `pods "web" is forbidden: exceeded quota`, time.Time{}, false},
		},
		"rejected by the syncer": {
			Reject(errors.New("hostPath is not allowed")),
			seen{Rejected, "a policy of the syncer", "SyncRejected", "hostPath is not allowed", time.Time{}, false},
		},
		"rejected for the name": {
			Reject(guard.ErrForeign), seen{Rejected, "another object of this name", "SyncRejected", guard.ErrForeign.Error(), time.Time{}, false},
		},
		"denied by a limit": {
			Reject(fmt.Errorf("reserve: %w", full)), seen{Rejected, "a validator", "LimitExceeded", full.Error(), time.Time{}, true},
		},
		"denied by a validator": {full, seen{Rejected, "a validator", "LimitExceeded", full.Error(), time.Time{}, true}},
		"denied beside another rejection": {
			Reject(errors.Join(errors.New("hostPort is not allowed"), full)),
			seen{Rejected, "a validator", "LimitExceeded", full.Error(), time.Time{}, true},
		},
		"a validator that fails": {
			Classify(&validation.FailureError{}),
			seen{Rejected, "a validator", "SyncRejected", (&validation.FailureError{}).Error(), time.Time{}, false},
		},
		"waiting for a deletion": {
			&WaitingError{On: "the deletion of the previous copy", Until: later},
			seen{Waiting, "the deletion of the previous copy", "SyncWaiting", "waiting for the deletion of the previous copy", later, false},
		},
		"waiting for its turn": {
			fmt.Errorf("write: %w", queue.ErrNotItsTurn),
			seen{Waiting, onValidation, "SyncWaiting", "write: " + queue.ErrNotItsTurn.Error(), time.Time{}, false},
		},
		"in doubt": {ErrInDoubt, seen{InDoubt, "", "SyncInDoubt", ErrInDoubt.Error(), time.Time{}, false}},
		"failed": {
			errors.New("dial tcp 10.0.0.1:6443: connect: connection refused"), seen{Failed, "", "SyncFailed", failed, time.Time{}, false},
		},
		"the syncer lacks a right": {
			Classify(apierrors.NewForbidden(pods, "web", errors.New(`User "syncer" cannot create resource "pods"`))),
			seen{Failed, "", "SyncFailed", failed, time.Time{}, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := OutcomeOf(tc.err)
			got := seen{State: o.State, On: o.On, Reason: o.Reason(), Until: o.Until, Denied: o.Denial != nil}
			if o.State != Synced {
				got.Message = o.Message()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if unready := o.State == BlockedOn || o.State == Waiting && !o.IsValidation(); IsUnready(tc.err) != unready {
				t.Errorf("the object is unready: %t, want %t", !unready, unready)
			}
		})
	}
}

// TestPausedHasNoEvent: the apiserver that would have to store it does not answer.
func TestPausedHasNoEvent(t *testing.T) {
	if reason := (Outcome{State: Paused, Err: errors.New("no answer")}).Reason(); reason != "" {
		t.Errorf("the event of a paused object has the reason %s", reason)
	}
}
