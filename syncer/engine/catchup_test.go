package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// ahead is a super cluster of which only its apiserver's answers to lists matter.
type ahead struct {
	cluster.Cluster
	client.Reader
	copies []*corev1.Pod
	err    error // of the first list
	asked  int
	// then is called after each list, with how many there were.
	then func(asked int)
}

func (a *ahead) GetAPIReader() client.Reader { return a }

func (a *ahead) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	a.asked++
	if a.err != nil && a.asked == 1 {
		return a.err
	}
	if a.then != nil {
		defer a.then(a.asked)
	}
	items := make([]runtime.Object, len(a.copies))
	for i, pod := range a.copies {
		items[i] = &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
	}
	return meta.SetList(list, items)
}

// at is a pod in a version.
func at(name, version string) *corev1.Pod {
	pod := kindstest.Named(name)
	pod.Namespace, pod.ResourceVersion = "super", version
	return pod
}

// behind is a session that begins while the super cluster is ahead of its cache.
func behind(ctx context.Context, super *ahead, cached ...client.Object) *session.Session {
	k := kindstest.Typed(kindstest.Rich())
	copies := cachestest.NewReader()
	cachestest.Hold(copies, k, cached...)
	s := session.Assemble(
		ctx, &session.SuperCluster{API: super, Caches: map[kinds.Source]*caches.Reader{kinds.Copies: copies}}, kindstest.Blue(), &session.TenantObjects{},
	)
	s.AddKind(k)
	return s
}

func TestLags(t *testing.T) {
	for name, tc := range map[string]struct {
		copies []*corev1.Pod
		cached []client.Object
		want   bool
	}{
		"there are no copies":                 {nil, nil, false},
		"the cache knows them as they are":    {[]*corev1.Pod{at("a", "7"), at("b", "8")}, []client.Object{at("a", "7"), at("b", "8")}, false},
		"the cache knows of what came since":  {[]*corev1.Pod{at("a", "7")}, []client.Object{at("a", "10"), at("b", "11")}, false},
		"one is not in the cache yet":         {[]*corev1.Pod{at("a", "7"), at("b", "8")}, []client.Object{at("a", "7")}, true},
		"one has changed since":               {[]*corev1.Pod{at("a", "10")}, []client.Object{at("a", "9")}, false},
		"the cache holds what is gone, still": {nil, []client.Object{at("a", "7")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := behind(t.Context(), &ahead{copies: tc.copies}, tc.cached...)
			for k := range s.SyncedKinds() {
				if lags, err := lags(s, time.Second, k); err != nil || lags != tc.want {
					t.Errorf("it lags: %t, %v", lags, err)
				}
			}
		})
	}
}

// TestASessionWaitsForItsCopies: also when they cannot be listed at first.
func TestASessionWaitsForItsCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 5
		super := &ahead{copies: []*corev1.Pod{at("a", "7")}, err: errors.New("down")}
		s := behind(t.Context(), super)
		super.then = func(asked int) {
			if k := s.Kind("Pod"); asked == late {
				cachestest.Hold(s.CacheOf(k), k, at("a", "7"))
			}
		}
		began := time.Now()
		if err := catchUp(s, time.Second); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); super.asked != late || took != (late-1)*catchUpEvery {
			t.Errorf("the copies were listed %d times in %s", super.asked, took)
		}
	})
}

func TestASessionThatEndsWaitsNoLonger(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	super := &ahead{copies: []*corev1.Pod{at("a", "7")}}
	if err := catchUp(behind(ctx, super), time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
