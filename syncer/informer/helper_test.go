package informer

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
)

// TestMain disables the logging of errors: client-go delays callers that log
// many, by a clock outside the bubble.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil //nolint:reassign // there is no other way
	os.Exit(m.Run())
}

// configMap returns an object in one of two namespaces.
func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop-" + name[:1], Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Data:       map[string]string{"value": value},
	}
}

// over returns an informer of a source.
func over(source cache.ListerWatcher) cache.SharedIndexInformer {
	return New(source, &corev1.ConfigMap{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// stockOver returns client-go's informer of a source.
func stockOver(source cache.ListerWatcher) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// inBubble runs a test with a source and a clock of its own; goroutines with
// the context have ended when the test ends.
func inBubble(t *testing.T, test func(t *testing.T, ctx context.Context, source *cachetesting.FakeControllerSource)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		source := cachetesting.NewFakeControllerSource()
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
			source.Shutdown()
		}()
		test(t, ctx, source)
	})
}

// journal is a handler that records its calls.
type journal struct {
	mu      sync.Mutex
	entries []string
	// state is the state according to the calls.
	state map[string]string
}

func newJournal() *journal { return &journal{state: map[string]string{}} }

func (j *journal) note(name, value, entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
	if value == "" {
		delete(j.state, name)
	} else {
		j.state[name] = value
	}
}

func (j *journal) OnAdd(obj any, initial bool) {
	o := obj.(*corev1.ConfigMap)
	entry := "add " + describe(o)
	if initial {
		entry = "initial " + entry
	}
	j.note(o.Name, o.Data["value"], entry)
}

func (j *journal) OnUpdate(was, now any) {
	o := now.(*corev1.ConfigMap)
	j.note(o.Name, o.Data["value"], fmt.Sprintf("update %s to %s", describe(was.(*corev1.ConfigMap)), describe(o)))
}

func (j *journal) OnDelete(obj any) {
	if gone, missed := obj.(cache.DeletedFinalStateUnknown); missed {
		o := gone.Obj.(*corev1.ConfigMap)
		j.note(o.Name, "", fmt.Sprintf("missed delete %s %s", gone.Key, describe(o)))
		return
	}
	o := obj.(*corev1.ConfigMap)
	j.note(o.Name, "", "delete "+describe(o))
}

func describe(o *corev1.ConfigMap) string {
	text := o.Name + "=" + o.Data["value"]
	if len(o.ManagedFields) > 0 {
		text += " with managed fields"
	}
	return text
}

// sorted returns the entries in order; objects of one list come in any order.
func (j *journal) sorted() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Sorted(slices.Values(j.entries))
}

// taken returns the entries since the last call.
func (j *journal) taken() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := j.entries
	j.entries = nil
	return entries
}

// known returns the state according to the calls.
func (j *journal) known() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.state)
}

// stored returns the objects in an informer's index.
func stored(i cache.SharedIndexInformer) map[string]string {
	values := map[string]string{}
	for _, obj := range i.GetStore().List() {
		o := obj.(*corev1.ConfigMap)
		values[o.Name] = o.Data["value"]
	}
	return values
}

// join adds a handler, which must succeed.
func join(t *testing.T, i cache.SharedIndexInformer, handler cache.ResourceEventHandler) cache.ResourceEventHandlerRegistration {
	t.Helper()
	joined, err := i.AddEventHandler(handler)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

// stripped is a transform.
func stripped(obj any) (any, error) {
	obj.(*corev1.ConfigMap).ManagedFields = nil
	return obj, nil
}
