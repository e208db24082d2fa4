package deletion

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// TestWitness checks that a pod that is deleted through the apiserver, even by
// force, has a deletion timestamp first.
func TestWitness(t *testing.T) {
	marked := kindstest.Named("web")
	marked.DeletionTimestamp = new(metav1.Now())
	for name, tc := range map[string]struct {
		obj          *corev1.Pod
		missed       bool
		want, forced bool
	}{
		"deleted":                           {marked, false, true, false},
		"deleted, and only found missing":   {marked, true, false, false},
		"vanished":                          {kindstest.Named("web"), false, false, false},
		"vanished, and only found missing":  {kindstest.Named("web"), true, false, false},
		"deleted by force with no time":     {withGrace(marked, 0), false, true, true},
		"forced, and only found missing":    {withGrace(marked, 0), true, false, false},
		"deleted with time left to the end": {withGrace(marked, 30), false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Doubts{deleted: NewDeletions(), forced: NewDeletions()}
			tc.obj.UID = "uid"
			s.Witness(tc.obj, tc.missed)
			if got := s.deleted.Has("uid", time.Now()); got != tc.want {
				t.Errorf("seen: %t, want %t", got, tc.want)
			}
			if got := s.forced.Has("uid", time.Now()); got != tc.forced {
				t.Errorf("forced: %t, want %t", got, tc.forced)
			}
		})
	}
}

func withGrace(pod *corev1.Pod, seconds int64) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionGracePeriodSeconds = &seconds
	return pod
}

// listed are the objects that an apiserver lists.
type listed struct {
	client.Reader
	objects []runtime.Object
	err     error
	asked   int
}

func (l *listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.asked++
	if l.err != nil {
		return l.err
	}
	return meta.SetList(list, l.objects)
}

// asked is a tenant's cluster that records calls.
type asked struct {
	session.TenantCluster
	pods     listed // the apiserver's answer
	verified int
	stranger error // the answer of Verify
	emptied  []int
	stop     error // the answer of Emptied
}

func (a *asked) GetAPIReader() client.Reader { return &a.pods }

func (a *asked) Verify(context.Context) error {
	a.verified++
	return a.stranger
}

func (a *asked) Emptied(pods int) error {
	a.emptied = append(a.emptied, pods)
	return a.stop
}

// bereft is a session of a tenant with that many pods, and these copies.
func bereft(pods int, copies ...*corev1.Pod) (*Doubts, *asked) {
	k := kindstest.Typed(kindstest.Rich())
	of := cachestest.NewReader()
	cachestest.Hold(of, k, kindstest.Objects(copies)...)
	tenant := &asked{}
	var known []client.Object
	for i := range pods {
		pod := kindstest.Named(fmt.Sprint(i))
		pod.Namespace = "web"
		tenant.pods.objects = append(tenant.pods.objects, pod)
		known = append(known, pod)
	}
	up := kinds.Up[*corev1.Event]{Name: "Event"}.Erase() // is not checked
	s := session.Assemble(
		context.Background(), &session.SuperCluster{Caches: map[kinds.Source]*caches.Reader{kinds.Copies: of}}, kindstest.Blue(),
		&session.TenantObjects{Cluster: tenant, Cache: cachestest.NewReader()},
	)
	cachestest.Hold(s.Cache, k, known...)
	s.AddKind(k)
	s.AddKind(up)
	return NewDoubts(s), tenant
}

// copies returns that many running copies.
func copies(n int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		pod := kindstest.Named(fmt.Sprint(i))
		pod.Annotations = map[string]string{names.Cluster: kindstest.Blue().Key, names.UID: fmt.Sprint("uid-", i)}
		pod.Spec.NodeName = "node-1"
		pod.Status.Phase = corev1.PodRunning
		all = append(all, pod)
	}
	return all
}

func TestAbandoned(t *testing.T) {
	more := func(change func(*corev1.Pod)) []*corev1.Pod {
		all := copies(maxAbandoned + 1)
		change(all[0])
		return all
	}
	for name, tc := range map[string]struct {
		pods   int
		copies []*corev1.Pod
		seen   types.UID
		want   int
		asks   bool
	}{
		"no running pods":                        {0, nil, "", 0, false},
		"the maximum":                            {0, copies(maxAbandoned), "", 0, false},
		"more":                                   {0, copies(maxAbandoned + 1), "", maxAbandoned + 1, true},
		"more, and the tenant has one":           {1, copies(100), "", 0, true},
		"one is on no node yet":                  {0, more(func(p *corev1.Pod) { p.Spec.NodeName = "" }), "", 0, false},
		"one is being deleted":                   {0, more(func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), "", 0, false},
		"one is completed":                       {0, more(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), "", 0, false},
		"one's deletion was observed":            {0, copies(maxAbandoned + 1), "uid-0", 0, false},
		"another object's deletion was observed": {0, copies(maxAbandoned + 1), "uid-x", maxAbandoned + 1, true},
		"a pending pod on a node runs":           {0, more(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), "", maxAbandoned + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, tenant := bereft(tc.pods, tc.copies...)
			s.deleted.Add(tc.seen, time.Now())
			got, err := s.abandoned(t.Context(), s.Kind("Pod"))
			if err != nil || got != tc.want {
				t.Errorf("%d are abandoned, %v; want %d", got, err, tc.want)
			}
			if asks := tenant.pods.asked > 0; asks != tc.asks {
				t.Errorf("requests to the tenant: %t, want %t", asks, tc.asks)
			}
		})
	}
}

func TestEmptinessHasToLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("ask the admin")
		s, tenant := bereft(0, copies(7)...)
		tenant.stop = stop
		expect := func(want error, emptied ...int) {
			t.Helper()
			if err := s.confirmAbsence(t.Context()); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if diff := cmp.Diff(emptied, tenant.emptied); diff != "" {
				t.Errorf("told of emptiness (-want +got):\n%s", diff)
			}
		}
		expect(pending.ErrInDoubt)
		time.Sleep(RetryInDoubt - time.Second)
		expect(pending.ErrInDoubt)

		// A pod appears: the tenant was only temporarily without pods.
		tenant.pods.objects = []runtime.Object{kindstest.Named("new")}
		expect(nil)
		tenant.pods.objects = nil
		time.Sleep(time.Minute)
		expect(pending.ErrInDoubt)

		// Unknown content does not count as empty, and does not allow a
		// deletion.
		tenant.pods.err = errors.New("no answer")
		expect(tenant.pods.err)
		tenant.pods.err = nil
		time.Sleep(RetryInDoubt)
		expect(stop, 7)
		tenant.stop = nil // confirmed
		expect(nil, 7, 7)
	})
}

func TestAllowRemoval(t *testing.T) {
	stranger := errors.New("another cluster")
	super := kindstest.Named("web")
	super.Annotations = map[string]string{names.UID: "uid-of-web"}
	for name, tc := range map[string]struct {
		stranger           error
		seen               types.UID
		want               error
		verified, counting bool
	}{
		"missing, with an observed deletion":    {seen: "uid-of-web", verified: true},
		"missing, without an observed deletion": {verified: true, want: pending.ErrInDoubt, counting: true},
		"missing, in another cluster":           {stranger: stranger, verified: true, want: stranger},
		"missing, observed, in another cluster": {stranger: stranger, seen: "uid-of-web", verified: true, want: stranger},
		"another object, and the first's deletion was observed": {
			seen: "uid-of-web", verified: true,
		},
		"another object, and the first's deletion was not observed": {
			verified: true, want: pending.ErrInDoubt, counting: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, tenant := bereft(0, copies(maxAbandoned+1)...)
			tenant.stranger = tc.stranger
			s.deleted.Add(tc.seen, time.Now())
			k := kindstest.Rich()
			err := s.AllowRemoval(t.Context(), k.Erase(), session.Objects{Super: super})
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if verified := tenant.verified > 0; verified != tc.verified {
				t.Errorf("asked who it is: %t, want %t", verified, tc.verified)
			}
			if counting := tenant.pods.asked > 0; counting != tc.counting {
				t.Errorf("asked for its pods: %t, want %t", counting, tc.counting)
			}
		})
	}
}

// TestANamespaceThatVanishes checks that the copy of a namespace stays while
// the tenant has pods in it.
func TestANamespaceThatVanishes(t *testing.T) {
	super := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.UID: "uid-of-web"}}}
	for name, tc := range map[string]struct {
		pods   int
		tenant client.Object
		seen   types.UID
		want   error
	}{
		"with all that was in it":                 {0, nil, "", nil},
		"without its pods":                        {1, nil, "", pending.ErrInDoubt},
		"observed, and its pods are in the cache": {1, nil, "uid-of-web", nil},
		"and another of the same name has pods":   {1, kindstest.Named("web"), "", nil},
		"and another of the same name is unused":  {0, kindstest.Named("web"), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := bereft(tc.pods)
			if tc.seen != "" {
				s.deleted.Add(tc.seen, time.Now())
				s.Cache = nil // pods are not read
			}
			k := kinds.Down[*corev1.Namespace]{Name: session.NamespaceKind, Object: &corev1.Namespace{}}.Erase()
			o := session.Objects{Key: client.ObjectKey{Name: "web"}, Tenant: tc.tenant, Super: super}
			if err := s.AllowRemoval(t.Context(), k, o); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}
