package pending

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
)

var (
	web       = kindstest.WebKey()
	other     = client.ObjectKey{Namespace: "other", Name: "web"}
	synced    = OutcomeOf(nil)
	onAccount = OutcomeOf(&BlockedError{On: "ServiceAccount web"})
	onClaim   = OutcomeOf(&BlockedError{On: "PersistentVolumeClaim data"})
	rejected  = OutcomeOf(Reject(errors.New("no")))
	denied    = OutcomeOf(&plugins.RejectionError{Reason: "LimitExceeded", Message: "full"})
	notItsOwn = OutcomeOf(queue.ErrNotItsTurn)
	began     = time.Unix(100, 0)
)

// counted returns a set of pending objects, and how many of a kind are in each
// state.
func counted() (*Objects, map[string]int) {
	counts := map[string]int{}
	return NewObjects(func(kind string, state State, by int) {
		of := kind + " " + string(state)
		if counts[of] += by; counts[of] == 0 {
			delete(counts, of)
		}
	}), counts
}

func expectCounts(t *testing.T, got, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

func TestObjectsAreCountedOnceInEachState(t *testing.T) {
	o, counts := counted()
	for _, key := range []client.ObjectKey{web, web, other} {
		o.Record("Pod", key, onAccount, began)
	}
	o.Record("Service", web, rejected, began)
	o.Record("Service", other, synced, began) // was never pending
	expectCounts(t, counts, map[string]int{"Pod BlockedOn": 2, "Service Rejected": 1})
	o.Record("Pod", web, rejected, began)
	expectCounts(t, counts, map[string]int{"Pod BlockedOn": 1, "Pod Rejected": 1, "Service Rejected": 1})
	o.Record("Pod", web, synced, began)
	o.Record("Pod", web, synced, began)
	expectCounts(t, counts, map[string]int{"Pod BlockedOn": 1, "Service Rejected": 1})
	o.End()
	o.Record("Pod", web, onAccount, began) // by a worker that is slower
	expectCounts(t, counts, map[string]int{})
	if o.Has("Pod", web) {
		t.Error("a tenant that is disengaged has pending objects")
	}
}

func TestObjectsArePendingSinceTheFirstOutcome(t *testing.T) {
	o, _ := counted()
	expect := func(got Entry, since time.Time, told string) {
		t.Helper()
		if !got.Since.Equal(since) || got.Told != told {
			t.Errorf("pending since %v, told %q; want %v, %q", got.Since, got.Told, since, told)
		}
	}
	later := began.Add(7 * time.Second)
	expect(o.Record("Pod", web, onAccount, began), began, "")
	o.Tell("Pod", web, "blocked")
	expect(o.Record("Pod", web, onAccount, later), began, "blocked")
	expect(o.Record("Pod", web, rejected, later), began, "blocked")
	expect(o.Record("Pod", web, onClaim, later), began, "blocked")
	o.Record("Pod", web, synced, later)
	o.Tell("Pod", web, "late") // by a worker that is slower
	expect(o.Record("Pod", web, onAccount, later), later, "")
}

func TestRejectedObjectsWaitLongerEachTime(t *testing.T) {
	o, _ := counted()
	var got []time.Duration
	for range 9 {
		got = append(got, o.Record("Pod", web, rejected, began).Retry)
	}
	s := time.Second
	want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if got := o.Record("Service", web, rejected, began).Retry; got != rejectedFirst {
		t.Errorf("a service of that name waits %s", got)
	}
	o.Record("Pod", web, synced, began)
	if got := o.Record("Pod", web, rejected, began).Retry; got != rejectedFirst {
		t.Errorf("after it was accepted, the pod waits %s", got)
	}
	if got := o.Record("Pod", other, denied, began).Retry; got != 0 {
		t.Errorf("a denied pod waits %s, although validators retry it", got)
	}
}

// TestTheTurnOfAnotherIsNoNews: a denied object that is retried while another
// one is validated stays denied.
func TestTheTurnOfAnotherIsNoNews(t *testing.T) {
	o, counts := counted()
	o.Record("Pod", web, denied, began)
	o.Tell("Pod", web, "full")
	if e := o.Record("Pod", web, notItsOwn, began); !e.Denied || e.Told != "full" {
		t.Errorf("the entry is %+v", e)
	}
	o.Record("Pod", other, notItsOwn, began)
	expectCounts(t, counts, map[string]int{"Pod Rejected": 1, "Pod Waiting": 1})
}

func TestSelect(t *testing.T) {
	o, _ := counted()
	o.Record("Pod", web, denied, began)
	o.Record("Pod", other, rejected, began)
	o.Record("Service", web, denied, began)
	if key, ok := o.AnyDenied("Pod"); !ok || key != web {
		t.Errorf("the denied pod is %v, %t", key, ok)
	}
	if key, ok := o.AnyDenied("Secret"); ok {
		t.Errorf("Secret %v is denied", key)
	}
	got := o.Select(func(e Entry) bool { return e.State == Rejected && !e.Denied })
	if diff := cmp.Diff([]kinds.ObjectKey{{Kind: "Pod", Key: other}}, got); diff != "" {
		t.Errorf("rejected by the super cluster (-want +got):\n%s", diff)
	}
}

func TestSummary(t *testing.T) {
	now := began.Add(TellAfter)
	for name, tc := range map[string]struct {
		record func(*Objects)
		want   string
	}{
		"nothing": {func(*Objects) {}, ""},
		"not for long": {
			func(o *Objects) { o.Record("Pod", web, onClaim, began.Add(time.Second)) }, "",
		},
		"one": {
			func(o *Objects) { o.Record("Pod", web, onClaim, began) },
			"1 object pending, oldest Pod default/web: BlockedOn PersistentVolumeClaim data",
		},
		"several": {
			func(o *Objects) {
				o.Record("Pod", web, onClaim, began)
				o.Record("Namespace", client.ObjectKey{Name: "prod"}, rejected, began.Add(-time.Second))
				o.Record("Service", web, OutcomeOf(errors.New("no answer")), now) // not for long
			},
			"2 objects pending, oldest Namespace prod: Rejected by a policy of the syncer: no",
		},
		"failed": {
			func(o *Objects) { o.Record("Pod", web, OutcomeOf(errors.New("no answer")), began) },
			"1 object pending, oldest Pod default/web: Failed: no answer",
		},
		"a long cause": {
			func(o *Objects) { o.Record("Pod", web, OutcomeOf(errors.New(strings.Repeat("x", 4000))), began) },
			("1 object pending, oldest Pod default/web: Failed: " + strings.Repeat("x", 4000))[:maxMessage],
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := counted()
			tc.record(o)
			if got := o.Summary(now); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
