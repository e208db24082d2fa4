package resources

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// superClass returns a class of the super cluster with all fields set.
func superClass[T client.Object](obj T, annotations map[string]string) T {
	obj = fill(obj)
	obj.SetName("fast")
	obj.SetLabels(map[string]string{"tier": "gold", "tenancy.x-k8s.io/super.public": "true"})
	obj.SetAnnotations(map[string]string{"owner": "storage-team@example.com", "tenancy.x-k8s.io/from-super": "forged"})
	maps.Copy(obj.GetAnnotations(), annotations)
	return obj
}

// classMeta returns the metadata that a tenant sees of it.
func classMeta(annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "fast", Labels: map[string]string{"tier": "gold"}, Annotations: annotations}
}

// testClass checks what a kind syncs up of a class: exactly the given object; a
// tenant's changes are reverted, and the class is recreated only after changes
// that an apiserver rejects.
func testClass[T client.Object](t *testing.T, kind kinds.Flow, super, want T, fixed ...func(T)) {
	t.Helper()
	k := kindOf[kinds.Up[T]](t, kind)
	if !k.Class || k.Node || k.Expires || k.Back != nil || k.Namespace != nil {
		t.Errorf("the kind is %+v; want one of classes", k)
	}
	desired := k.Desired(view, super)
	if diff := cmp.Diff(want, desired); diff != "" {
		t.Errorf("the object that is synced up (-want +got):\n%s", diff)
	}

	edited := fill(clone(want))
	edited.SetName(want.GetName())
	edited.SetAnnotations(map[string]string{"note": "the tenant's own"})
	k.Merge(edited, desired)
	if note := edited.GetAnnotations()["note"]; note != "the tenant's own" {
		t.Errorf("the tenant's annotation reads %q after Merge", note)
	}
	if diff := cmp.Diff(want, k.Desired(view, edited)); diff != "" {
		t.Errorf("an edited class after Merge (-want +got):\n%s", diff)
	}

	replaced := func(tenant T) bool { return k.Replace != nil && k.Replace(tenant, desired) }
	if replaced(want) {
		t.Error("a class that is as it should be is recreated")
	}
	for i, change := range fixed {
		changed := clone(want)
		change(changed)
		if !replaced(changed) {
			t.Errorf("a class with change %d cannot be changed in place, and is not recreated", i)
		}
	}
	relabelled := clone(want)
	relabelled.SetLabels(nil)
	if replaced(relabelled) {
		t.Error("a class with other labels is recreated")
	}
}

func TestTakeAnnotations(t *testing.T) {
	tests := map[string]struct{ to, from, want map[string]string }{
		"one is given":                    {nil, map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1"}},
		"one is changed":                  {map[string]string{"a": "1", "c": "3"}, map[string]string{"a": "2"}, map[string]string{"a": "2", "c": "3"}},
		"one is removed":                  {map[string]string{"a": "1", "c": "3"}, nil, map[string]string{"c": "3"}},
		"none is on either side":          {nil, nil, nil},
		"other annotations are unchanged": {map[string]string{"c": "3"}, map[string]string{"b": "2"}, map[string]string{"c": "3"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			to := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: tt.to}}
			from := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: tt.from}}
			was := clone(to).Annotations
			shared := tt.to
			takeAnnotations(to, from, []string{"a"})
			if diff := cmp.Diff(tt.want, to.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(was, shared); diff != "" {
				t.Errorf("the map that was there before changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestNotOffered(t *testing.T) {
	text := notOffered("spec.storageClassName", "storageclasses", "gold").Error()
	for _, part := range []string{"spec.storageClassName", `"gold"`, "kubectl get storageclasses -l tenancy.x-k8s.io/from-super "} {
		if !strings.Contains(text, part) {
			t.Errorf("the text %q does not contain %q", text, part)
		}
	}
}
