package own

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/caches"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/pending"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

const (
	closedName = "closed"
	suffix     = ".net"
)

// specs are the networks of a tenant; nil if they have not been read.
type specs []string

func (s specs) Known() bool { return s != nil }

func (s specs) Spec(name string) (kinds.Network, bool) {
	return kinds.Network{Name: name}, slices.Contains(s, name)
}

// store is a namespace of the super cluster: objects by their names.
type store struct {
	superCluster

	objects, pods map[string]client.Object
}

func (s *store) SuperObject(_ context.Context, _ *kinds.Kind, key client.ObjectKey) (client.Object, error) {
	return s.objects[key.Name], nil
}

func (s *store) EachIn(_ context.Context, k *kinds.Kind, _ string, f func(client.Object)) error {
	of := s.objects
	if k.Down.Mirror != nil {
		of = s.pods
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		f(of[name])
	}
	return nil
}

// apart is a kind with objects that keep networks apart.
func apart() *kinds.Kind {
	k := kindstest.Needed()
	object := func(of string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: map[string]string{"of": of}} }
	k.OwnInNetworks = &kinds.OwnInNetworks[*corev1.ConfigMap]{
		Closed: kinds.Own[*corev1.ConfigMap]{Name: closedName, Desired: func(kinds.View) *corev1.ConfigMap { return object("all") }},
		Suffix: suffix, Desired: func(_ kinds.View, n kinds.Network) *corev1.ConfigMap { return object(n.Name) },
	}
	return kindstest.Typed(k)
}

// apartSyncer returns a syncer of objects that keep networks apart.
func apartSyncer(s *store, known NetworkSpecs) *Syncer {
	of, pods := apart(), kindstest.Plain()
	pods.Mirror = kindstest.Rich().Mirror
	pods.Mirror.Ended = func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }
	member := pods.Erase()
	return &Syncer{
		declared: func() iter.Seq2[*kinds.Kind, kinds.Own[client.Object]] {
			return func(func(*kinds.Kind, kinds.Own[client.Object]) bool) {}
		},
		networks: networks{
			specs: known,
			declared: func() iter.Seq2[*kinds.Kind, *kinds.OwnInNetworks[client.Object]] {
				return func(yield func(*kinds.Kind, *kinds.OwnInNetworks[client.Object]) bool) {
					yield(of, of.Down.OwnInNetworks)
				}
			},
			members:    func() iter.Seq[*kinds.Kind] { return slices.Values([]*kinds.Kind{member}) },
			namespaces: func(_ context.Context, f func(string)) error { f("default"); f("default"); return nil },
		},
		view: s, reader: s, writer: s, recent: caches.NewRecent(), locks: &caches.KeyLocks{}, identity: kindstest.Blue,
	}
}

// holding returns a namespace with objects, each of the network that it names,
// and with pods of networks.
func holding(objects []string, pods ...*corev1.Pod) *store {
	s := &store{objects: map[string]client.Object{}, pods: map[string]client.Object{}}
	for _, name := range objects {
		of, _ := strings.CutSuffix(strings.ReplaceAll(name, closedName, "all"), suffix)
		s.objects[name] = fence(func(obj *corev1.ConfigMap) { obj.Name, obj.Data = name, map[string]string{"of": of} })
	}
	for _, pod := range pods {
		s.pods[pod.Name] = pod
	}
	return s
}

// podIn returns the copy of a pod in a network.
func podIn(network string, phase corev1.PodPhase) *corev1.Pod {
	pod := kindstest.PodIn("team-71a1c3-blue-default", "in-"+network)
	pod.Labels, pod.Status.Phase = map[string]string{networkv1.Label: network}, phase
	pod.Annotations = map[string]string{names.Cluster: kindstest.Blue().Key}
	return pod
}

// TestSyncNetworks: a namespace has one object, and one for each network that
// has or had pods there. Those that open are written before the one that closes.
func TestSyncNetworks(t *testing.T) {
	running := corev1.PodRunning
	foreign := podIn("a", running)
	foreign.Annotations = nil
	for name, tt := range map[string]struct {
		specs NetworkSpecs
		store *store
		want  []string
	}{
		"no pods":                              {specs{"a"}, holding(nil), []string{"create closed"}},
		"a pod":                                {specs{"a", "b"}, holding(nil, podIn("a", running)), []string{"create a.net", "create closed"}},
		"a pod that has ended":                 {specs{"a"}, holding([]string{closedName}, podIn("a", corev1.PodSucceeded)), nil},
		"a pod of the platform":                {specs{"a"}, holding([]string{closedName}, foreign), nil},
		"up to date":                           {specs{"a"}, holding([]string{closedName, "a.net"}, podIn("a", running)), nil},
		"after the last pod":                   {specs{"a"}, holding([]string{closedName, "a.net"}), nil},
		"a network that is gone":               {specs{"a"}, holding([]string{closedName, "a.net", "b.net"}), []string{"delete b.net"}},
		"a network that is gone, with pods":    {specs{"a"}, holding([]string{closedName, "b.net"}, podIn("b", running)), nil},
		"of a network that is gone, and pods":  {specs{"a"}, holding([]string{closedName}, podIn("b", running)), nil},
		"networks that have not been read":     {specs(nil), holding([]string{"a.net", "b.net"}, podIn("c", running)), nil},
		"no networks":                          {nil, holding(nil, podIn("default", running)), nil},
		"no networks any more":                 {nil, holding([]string{"a.net", closedName}, podIn("a", running)), []string{"delete closed", "delete a.net"}},
		"an object that another client closed": {specs{"a"}, closed("a.net", holding([]string{closedName, "a.net"})), []string{"patch a.net"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, namespace := apartSyncer(tt.store, tt.specs), kindstest.Typed(kindstest.Plain())
			namespace.Name = session.NamespaceKind
			o := session.Objects{Key: client.ObjectKey{Name: "default"}}
			if differs, err := s.Differs(t.Context(), namespace, o); err != nil || differs != (tt.want != nil) {
				t.Errorf("differs: %t, %v; want %t", differs, err, tt.want != nil)
			}
			if err := s.Sync(t.Context(), namespace, o); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, tt.store.written); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}

// closed returns a namespace in which another client has changed an object.
func closed(name string, s *store) *store {
	s.objects[name].(*corev1.ConfigMap).Data = nil
	return s
}

// TestSyncNetworksStops: a failure is retried, before what depends on it.
func TestSyncNetworksStops(t *testing.T) {
	s := holding(nil, podIn("a", corev1.PodRunning))
	s.err = errors.New("connection refused")
	err := apartSyncer(s, specs{"a"}).syncNetworks(t.Context(), "default")
	if err == nil || !slices.Equal(s.written, []string{"create a.net"}) {
		t.Errorf("%v is written, %v", s.written, err)
	}
}

// TestEnsureNetwork: the objects of a network are created before its first pod.
func TestEnsureNetwork(t *testing.T) {
	for name, tt := range map[string]struct {
		store *store
		want  []string
	}{
		"the first pod of a namespace":    {holding(nil), []string{"create a.net", "create closed"}},
		"the first pod of a network":      {holding([]string{closedName}), []string{"create a.net"}},
		"another pod":                     {holding([]string{closedName, "a.net"}), nil},
		"pods that are older":             {holding(nil, podIn("b", corev1.PodRunning)), []string{"create a.net", "create b.net", "create closed"}},
		"what exists is not compared":     {closed("a.net", holding([]string{closedName, "a.net"})), nil},
		"what a tenant's copy has chosen": {copiedAs("a.net", holding([]string{closedName, "a.net"})), []string{"delete a.net"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := apartSyncer(tt.store, specs{"a", "b"}).EnsureNetwork(t.Context(), "default", "a")
			if diff := cmp.Diff(tt.want, tt.store.written); diff != "" || (err != nil) != strings.HasPrefix(name, "what a tenant") {
				t.Errorf("error %v, written (-want +got):\n%s", err, diff)
			}
		})
	}
	err := apartSyncer(holding(nil), specs{"a"}).EnsureNetwork(t.Context(), "default", "b")
	if !errors.As(err, new(*pending.BlockedError)) {
		t.Errorf("a network that is gone: %v", err)
	}
}

// copiedAs returns a namespace in which an object is the copy of a tenant's.
func copiedAs(name string, s *store) *store {
	s.objects[name].SetAnnotations(map[string]string{names.Cluster: kindstest.Blue().Key, names.UID: "tenant-uid"})
	return s
}

func TestRelease(t *testing.T) {
	s := holding([]string{closedName, "a.net", "b.net"})
	if err := apartSyncer(s, specs{"a", "b"}).Release(t.Context(), "b"); err != nil || !slices.Equal(s.written, []string{"delete b.net"}) {
		t.Errorf("%v is written, %v", s.written, err)
	}
	if err := apartSyncer(holding(nil), specs{"a", "b"}).Release(t.Context(), "b"); err != nil {
		t.Errorf("of a network that never had pods: %v", err)
	}
}

func TestIsOfNetworks(t *testing.T) {
	k := apart()
	for name, want := range map[string]bool{closedName: true, "a.net": true, "a.net.x": false, "other": false} {
		if got := IsOwn(k, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}); got != want {
			t.Errorf("%s is own: %t, want %t", name, got, want)
		}
	}
}
