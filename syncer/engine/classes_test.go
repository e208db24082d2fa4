package engine

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/caches/cachestest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/syncup"
)

// sleeping is a session whose tenant's classes are not watched, and how they would be.
func sleeping(super ...client.Object) (*engagement, *cachestest.Informer, *cachestest.Cache) {
	s, _ := standing(nil, super)
	there := cachestest.NewInformer()
	close(there.Synced)
	over := &cachestest.Cache{Informer: there}
	s.Cache = caches.NewReader(over)
	return s, there, over
}

var fastKey = client.ObjectKey{Name: "fast"}

func TestClassesThatAreNotShownAreNotWatched(t *testing.T) {
	s, _, over := sleeping(class(nil))
	k := s.Kind("StorageClass")
	if !s.Asleep(k) || s.Asleep(s.Kind("ConfigMap")) {
		t.Error("only classes sleep")
	}
	if err := s.up.Sync(t.Context(), k, fastKey); err != nil {
		t.Error(err)
	}
	keys, err := s.patrolled.Keys(t.Context(), k)
	if err != nil || !keys.Has(fastKey) {
		t.Errorf("the patrol looks at %v, %v", keys, err)
	}
	if differs, err := s.up.Differs(t.Context(), k, fastKey); err != nil || differs {
		t.Errorf("it differs: %t, %v", differs, err)
	}
	if over.Opened > 0 || !s.Asleep(k) {
		t.Error("it is watched")
	}
}

func TestClassesThatAreShownAreWatched(t *testing.T) {
	s, there, over := sleeping(class(map[string]string{names.Public: "true"}))
	k := s.Kind("StorageClass")
	if differs, err := s.up.Differs(t.Context(), k, fastKey); err != nil || !differs || over.Opened > 0 {
		t.Errorf("the patrol finds it: %t, %v, and %d watches were opened", differs, err, over.Opened)
	}
	_ = there.Index.Add(class(nil)) // the tenant's own
	for range 2 {
		if err := s.up.Sync(t.Context(), k, fastKey); !errors.Is(err, syncup.ErrOwn) {
			t.Errorf("got %v, want %v", err, syncup.ErrOwn)
		}
	}
	if s.Asleep(k) || over.Opened != 1 || there.Handlers != 1 {
		t.Errorf("it sleeps: %t; %d watches were opened with %d handlers", s.Asleep(k), over.Opened, there.Handlers)
	}
}

func TestClassesThatCannotBeWatched(t *testing.T) {
	s, _, over := sleeping(class(map[string]string{names.Public: "true"}))
	over.Err = errors.New("no such kind")
	if err := s.up.Sync(t.Context(), s.Kind("StorageClass"), fastKey); !errors.Is(err, over.Err) {
		t.Errorf("got %v", err)
	}
}

// earlier are the objects that an apiserver lists.
type earlier struct {
	client.Reader
	objects []runtime.Object
	err     error
	asked   int
}

func (l *earlier) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.asked++
	if l.err != nil {
		return l.err
	}
	return meta.SetList(list, l.objects)
}

// remembering is a tenant whose apiserver has classes from an earlier time.
type remembering struct {
	still
	earlier
}

func (r *remembering) GetAPIReader() client.Reader { return &r.earlier }
func (r *remembering) GetCache() cache.Cache       { return nil }

// TestClassesOfAnEarlierTime: what was shown once has to go if it is not any
// more, so it is watched from the beginning.
func TestClassesOfAnEarlierTime(t *testing.T) {
	of := func(labels, annotations map[string]string) runtime.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "fast", Labels: labels, Annotations: annotations}}
	}
	for name, tc := range map[string]struct {
		held []runtime.Object
		err  error
		want int
	}{
		"none":                          {nil, nil, 0},
		"of the tenant's own":           {[]runtime.Object{of(nil, nil)}, nil, 0},
		"shown":                         {[]runtime.Object{of(nil, nil), of(session.Mark(nil), session.Mark(nil))}, nil, 1},
		"shown, robbed of a mark":       {[]runtime.Object{of(nil, session.Mark(nil))}, nil, 1},
		"the apiserver does not answer": {nil, errors.New("no answer"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, over := sleeping()
			s.Cluster = &remembering{earlier: earlier{objects: tc.held, err: tc.err}}
			known, err := s.opener.watchUsed()
			if err != nil || len(known) != tc.want || over.Opened != tc.want {
				t.Errorf("%d kinds are waited for and %d watched, %v; want %d", len(known), over.Opened, err, tc.want)
			}
		})
	}
}
