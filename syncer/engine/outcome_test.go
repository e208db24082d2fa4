package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/deletion"
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

// told records the events that a tenant's apiserver is sent.
type told struct {
	client.Client
	events []string
}

func (c *told) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	event := obj.(*corev1.Event)
	c.events = append(c.events, event.Reason+": "+event.Message)
	return nil
}

func (s *still) GetScheme() *runtime.Scheme  { return clientgoscheme.Scheme }
func (s *still) GetAPIReader() client.Reader { return nil }

// concluding returns a tenant with one ConfigMap, and the events that it is sent.
func concluding() (*engagement, *still, *told) {
	s, cluster := standing([]client.Object{kindstest.Settings()}, nil)
	events := &told{}
	s.Client = events
	s.Queue = fairqueue.New(queue.Request.Lane, fairqueue.Options{})
	return s, cluster, events
}

// TestEveryOutcomeIsExplained reconciles an object with the same outcome at
// once, after five seconds, and after eleven.
func TestEveryOutcomeIsExplained(t *testing.T) {
	unreachable := errors.New("dial tcp 10.0.0.1:6443: connect: connection refused")
	full := &plugins.RejectionError{Reason: "LimitExceeded", Message: "full"}
	for name, tc := range map[string]struct {
		err    error
		paused bool
		// first is the result of the first reconcile, fails its error.
		first reconcile.Result
		fails bool
		// events are sent after the second and after the third reconcile.
		soon, later []string
		state       pending.State
	}{
		"synced": {},
		"blocked": {
			err: &pending.BlockedError{On: "Namespace web"}, first: reconcile.Result{RequeueAfter: pending.TellAfter},
			later: []string{"SyncBlocked: blocked on Namespace web, which does not exist or is not synced yet"}, state: pending.BlockedOn,
		},
		"waiting": {
			err: &pending.WaitingError{On: "a deletion"}, first: reconcile.Result{RequeueAfter: pending.TellAfter},
			later: []string{"SyncWaiting: waiting for a deletion"}, state: pending.Waiting,
		},
		"waiting for the validation of another": {err: queue.ErrNotItsTurn, state: pending.Waiting},
		"rejected": {
			err: pending.Reject(errors.New("no")), first: reconcile.Result{RequeueAfter: time.Second},
			soon: []string{"SyncRejected: no", "SyncRejected: no"}, later: []string{"SyncRejected: no"}, state: pending.Rejected,
		},
		"denied": {err: full, soon: []string{"LimitExceeded: full"}, state: pending.Rejected},
		"in doubt": {
			err: pending.ErrInDoubt, first: reconcile.Result{RequeueAfter: deletion.RetryInDoubt},
			later: []string{"SyncInDoubt: " + pending.ErrInDoubt.Error()}, state: pending.InDoubt,
		},
		"failed": {
			err: unreachable, fails: true, state: pending.Failed,
			later: []string{"SyncFailed: " + pending.Outcome{State: pending.Failed}.Message()},
		},
		"paused": {err: unreachable, paused: true, fails: true, state: pending.Paused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, cluster, events := concluding()
				cluster.ill = tc.paused
				k, key := s.Kind("ConfigMap"), client.ObjectKeyFromObject(kindstest.Settings())
				conclude := func() (reconcile.Result, error) {
					return s.outcomes.conclude(t.Context(), k, key, s.outcomes.of(tc.err), 0)
				}

				result, err := conclude()
				if result != tc.first || (err != nil) != tc.fails {
					t.Errorf("the reconcile returns %+v, %v; want %+v, an error: %t", result, err, tc.first, tc.fails)
				}
				expectEvents := func(want []string) {
					t.Helper()
					if diff := cmp.Diff(want, events.events); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
					events.events = nil
				}
				time.Sleep(5 * time.Second)
				_, _ = conclude()
				expectEvents(tc.soon)
				time.Sleep(6 * time.Second)
				_, _ = conclude()
				expectEvents(tc.later)
				if tc.state != pending.Rejected {
					_, _ = conclude()
					expectEvents(nil)
				}
				expectPending(t, s, tc.state)
				_, _ = s.outcomes.conclude(t.Context(), k, key, s.outcomes.of(nil), 0)
				expectPending(t, s, "")
			})
		})
	}
}

// expectPending compares the state of the only pending object; empty for none.
func expectPending(t *testing.T, s *engagement, want pending.State) {
	t.Helper()
	var got pending.State
	for _, o := range s.Pending.Oldest(time.Now()) {
		got = o.State
	}
	if got != want {
		t.Errorf("the object is %q, want %q", got, want)
	}
}

// TestADenialIsRetriedIfSomethingChangedMeanwhile: the retry of all denied
// objects may have come before this one was among them.
func TestADenialIsRetriedIfSomethingChangedMeanwhile(t *testing.T) {
	s, _, _ := concluding()
	denial := pending.OutcomeOf(&plugins.RejectionError{Reason: "LimitExceeded", Message: "full"})
	k, key := s.Kind("ConfigMap"), client.ObjectKeyFromObject(kindstest.Settings())
	s.outcomes.retries.Store(7)
	for retries, want := range map[int64]int{7: 0, 6: 1} {
		if _, err := s.outcomes.conclude(t.Context(), k, key, denial, retries); err != nil {
			t.Fatal(err)
		}
		if got := s.Queue.LaneLen(s.Lane()); got != want {
			t.Errorf("%d objects are retried, want %d", got, want)
		}
		s.Queue.Drop(s.Lane())
	}
}
