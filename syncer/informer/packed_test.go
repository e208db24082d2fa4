package informer

import (
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// podOf returns a pod with fields of all special formats.
func podOf(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: "1", ResourceVersion: "7", Generation: 2,
			Labels: map[string]string{"app": name}, CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "example/app:1", Env: []corev1.EnvVar{{Name: "EMPTY"}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: new(metav1.NewTime(time.Unix(1_700_000_001, 0))),
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// TestPacked checks that readers get the complete object, and share it until it
// has to be unpacked again.
func TestPacked(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only explicit collections
	var made []any
	kept, err := pack(podOf("web"), func(obj any) { made = append(made, obj) })
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		first := unpack(kept)
		if diff := cmp.Diff(podOf("web"), first); diff != "" {
			t.Fatalf("unpacked (-want +got):\n%s", diff)
		}
		if first != unpack(kept) {
			t.Error("two readers have the object twice")
		}
		if n := len(made); n > 0 && made[n-1] != first {
			t.Error("made was not called for the object that was unpacked again")
		}
		runtime.GC()
	}
	if len(made) != 2 {
		t.Errorf("the object was unpacked %d times, want 2", len(made))
	}
}

// ignore is called with objects that are unpacked again.
func ignore(any) {}

// TestNothingPackedIsKeptAlive checks that an object that is no longer read
// needs no memory except its packed form.
func TestNothingPackedIsKeptAlive(t *testing.T) {
	kept, err := pack(podOf("web"), ignore)
	if err != nil {
		t.Fatal(err)
	}
	collected := make(chan struct{})
	func() {
		pod := unpack(kept).(*corev1.Pod)
		runtime.AddCleanup(pod, func(c chan struct{}) { close(c) }, collected)
	}()
	runtime.GC()
	<-collected
	runtime.KeepAlive(kept)
}

// unreadable is an object with an invalid wire format.
type unreadable struct{ corev1.ConfigMap }

func (*unreadable) Unmarshal([]byte) error { return errors.New("unreadable") }

func TestWhatIsNotPacked(t *testing.T) {
	named := podOf("web")
	named.Kind = "Pod"
	for name, obj := range map[string]any{
		"without a wire format": &unstructured.Unstructured{},
		"that states its kind":  named,
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := pack(obj, ignore)
			if err != nil || kept != obj || unpack(kept) != obj {
				t.Errorf("it is kept as a %T: %v", kept, err)
			}
		})
	}
	t.Run("what cannot be read again", func(t *testing.T) {
		kept, err := pack(&unreadable{}, ignore)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		if got, isError := unpack(kept).(error); !isError || got == nil {
			t.Errorf("got a %T in its place", unpack(kept))
		}
	})
}

// TestIndexOfPackedObjects checks that readers of an index, and its indexers,
// see unpacked objects.
func TestIndexOfPackedObjects(t *testing.T) {
	byNode := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Spec.NodeName}, nil }
	byName := func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Name}, nil }
	i := newIndex(cache.Indexers{"node": byNode}, ignore)
	pods := []any{podOf("web"), podOf("db")}
	if err := i.Replace(pods, "7"); err != nil {
		t.Fatal(err)
	}
	if err := i.AddIndexers(cache.Indexers{"name": byName}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(i.Add(podOf("new")), i.Update(podOf("web")), i.Delete(podOf("db"))); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	names := func(found []any, err error) []string {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		all := make([]string, len(found))
		for n, obj := range found {
			all[n] = obj.(*corev1.Pod).Name
		}
		slices.Sort(all)
		return all
	}
	expect(t, names(i.List(), nil), "new", "web")
	expect(t, names(i.ByIndex("node", "node-1")), "new", "web")
	expect(t, names(i.ByIndex("name", "db")))
	expect(t, names(i.Index("name", podOf("web"))), "web")
	for what, get := range map[string]func() (any, bool, error){
		"by object": func() (any, bool, error) { return i.Get(podOf("new")) },
		"by key":    func() (any, bool, error) { return i.GetByKey("shop/new") },
	} {
		if obj, exists, err := get(); err != nil || !exists || obj.(*corev1.Pod).Name != "new" {
			t.Errorf("%s: got %v, %t, %v", what, obj, exists, err)
		}
	}
	if obj, exists, err := i.GetByKey("shop/db"); err != nil || exists || obj != nil {
		t.Errorf("a deleted object: got %v, %t, %v", obj, exists, err)
	}
}
