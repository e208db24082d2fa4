package share

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// leases are leases in memory, with the preconditions of an apiserver.
type leases struct {
	coordination.LeaseInterface // nil: no other methods are called

	mu      sync.Mutex
	items   map[string]coordinationv1.Lease
	version int
	// down has requests fail, and mute has writes succeed without an answer.
	down, mute bool
	writes     int
}

var (
	errDown = errors.New("the super cluster does not respond")
	group   = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

func (l *leases) lockedStore(written *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	l.version++
	l.writes++
	written = written.DeepCopy()
	written.ResourceVersion = fmt.Sprint(l.version)
	if written.UID == "" {
		written.UID = types.UID("uid-" + written.ResourceVersion)
	}
	l.items[written.Name] = *written
	if l.mute {
		return nil, errDown
	}
	return written.DeepCopy(), nil
}

// Create implements coordination.LeaseInterface.
func (l *leases) Create(_ context.Context, made *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, exists := l.items[made.Name]; exists && !l.down {
		return nil, apierrors.NewAlreadyExists(group, made.Name)
	}
	if l.down {
		return nil, errDown
	}
	return l.lockedStore(made)
}

// Update implements coordination.LeaseInterface.
func (l *leases) Update(_ context.Context, next *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, exists := l.items[next.Name]
	switch {
	case l.down:
		return nil, errDown
	case !exists:
		return nil, apierrors.NewNotFound(group, next.Name)
	case now.UID != next.UID || now.ResourceVersion != next.ResourceVersion:
		return nil, apierrors.NewConflict(group, next.Name, nil)
	}
	return l.lockedStore(next)
}

// Get implements coordination.LeaseInterface.
func (l *leases) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, exists := l.items[name]
	switch {
	case l.down:
		return nil, errDown
	case !exists:
		return nil, apierrors.NewNotFound(group, name)
	}
	return &now, nil
}

// List implements coordination.LeaseInterface.
func (l *leases) List(context.Context, metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errDown
	}
	list := &coordinationv1.LeaseList{}
	for _, item := range l.items {
		list.Items = append(list.Items, item)
	}
	return list, nil
}

// Delete implements coordination.LeaseInterface.
func (l *leases) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return errDown
	}
	delete(l.items, name)
	return nil
}

// set changes how the leases behave.
func (l *leases) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// names returns how many leases there are, and the UID of one of them.
func (l *leases) names() (number int, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, item := range l.items {
		uid = item.UID
	}
	return len(l.items), uid
}

// served records the shares of a replica.
type served struct {
	mu     sync.Mutex
	shares Shares
	// failures is how many of the next calls fail.
	failures int
}

func (s *served) serve(_ context.Context, shares Shares) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures > 0 {
		s.failures--
		return errors.New("requests are in flight")
	}
	s.shares = shares
	return nil
}

func (s *served) begins() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shares.Begins(types.NamespacedName{Namespace: "team", Name: "red"})
}

// startAlone starts the only replica, until the end of a test.
func startAlone(t *testing.T, continues bool) (r *Replica, l *leases, s *served, ended chan error) {
	t.Helper()
	l, s, ended = &leases{items: map[string]coordinationv1.Lease{}}, &served{}, make(chan error, 1)
	metrics, err := NewMetrics(prometheus.NewRegistry(), "vc_test")
	if err != nil {
		t.Fatal(err)
	}
	r = newReplica(l, "vc-test", Timing{Duration: 7 * time.Second, Term: 5 * time.Second, RenewEvery: time.Second}, metrics)
	r.Serve(s.serve)
	if continues {
		r.Continue()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	return r, l, s, ended
}

// expect checks whether the replica serves tenants, and may write.
func expect(t *testing.T, r *Replica, s *served, want bool, when string) {
	t.Helper()
	synctest.Wait()
	if writes := r.Ready() == nil; s.begins() != want || writes != want {
		t.Errorf("%s: serves is %t, and writes is %t", when, s.begins(), writes)
	}
}

func TestAReplicaContinues(t *testing.T) {
	for name, tc := range map[string]struct {
		outage time.Duration
		during func(l *leases)
		fails  int // attempts to hand over
		same   bool
	}{
		"with its lease, when it was not deleted": {30 * time.Second, func(*leases) {}, 0, true},
		"with a new lease, when it was deleted":   {30 * time.Second, func(l *leases) { clear(l.items) }, 0, false},
		"when it could not hand over at once":     {30 * time.Second, func(*leases) {}, 3, true},
		"with a lease that was replaced": {30 * time.Second, func(l *leases) {
			for name, item := range l.items {
				item.UID = "another"
				l.items[name] = item
			}
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l, s, ended := startAlone(t, true)
				time.Sleep(3 * time.Second)
				expect(t, r, s, true, "before")
				_, first := l.names()
				l.set(func() { l.down = true })
				s.mu.Lock()
				s.failures = tc.fails
				s.mu.Unlock()
				time.Sleep(3 * time.Second)
				expect(t, r, s, true, "shortly after the outage began")
				time.Sleep(3 * time.Second)
				if synctest.Wait(); r.Ready() == nil {
					t.Error("writes when its lease has expired")
				}
				time.Sleep(tc.outage)
				expect(t, r, s, false, "at the end of the outage")
				if err := r.Joined(); err != nil {
					t.Errorf("it has joined before: %v", err)
				}
				l.set(func() {
					tc.during(l)
					l.down = false
				})
				time.Sleep(4 * time.Second)
				expect(t, r, s, true, "after the outage")
				number, now := l.names()
				if number != 1 || (now == first) != tc.same {
					t.Errorf("%d leases, and the same one: %t", number, now == first)
				}
				select {
				case err := <-ended:
					t.Errorf("it has ended: %v", err)
				default:
				}
			})
		})
	}
}

func TestAReplicaThatDoesNotContinueEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l, s, ended := startAlone(t, false)
		time.Sleep(3 * time.Second)
		expect(t, r, s, true, "before")
		l.set(func() { l.down = true })
		time.Sleep(6 * time.Second)
		if err := <-ended; !errors.Is(err, errLapsed) {
			t.Errorf("got %v", err)
		}
		l.set(func() { l.down = false })
		before := l.writes
		time.Sleep(time.Minute)
		if err := r.Ready(); !errors.Is(err, errLapsed) || l.writes != before {
			t.Errorf("after the outage: %v, and %d writes of its lease", err, l.writes-before)
		}
	})
}

// TestAnAnswerIsLost: the lease exists although its creation has failed.
func TestAnAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l, s, _ := startAlone(t, true)
		time.Sleep(3 * time.Second)
		l.set(func() { clear(l.items); l.mute = true })
		time.Sleep(10 * time.Second)
		expect(t, r, s, false, "without answers")
		l.set(func() { l.mute = false })
		time.Sleep(5 * time.Second)
		expect(t, r, s, true, "with answers")
	})
}

func TestAReplicaLeaves(t *testing.T) {
	for name, down := range map[string]bool{"while it has a lease": false, "while the super cluster does not respond": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s := &leases{items: map[string]coordinationv1.Lease{}}, &served{}
				metrics, err := NewMetrics(prometheus.NewRegistry(), "vc_test")
				if err != nil {
					t.Fatal(err)
				}
				r := newReplica(l, "vc-test", DefaultTiming(), metrics)
				r.Serve(s.serve)
				r.Continue()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- r.Start(ctx) }()
				time.Sleep(3 * time.Second)
				l.set(func() { l.down = down })
				time.Sleep(20 * time.Second)
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("got %v", err)
				}
				if number, _ := l.names(); s.begins() || (number == 0) == down {
					t.Errorf("serves: %t, and there are %d leases", s.begins(), number)
				}
			})
		})
	}
}
