package kinds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
)

// needed returns a kind of which caches only hold metadata, with changes.
func needed(change ...func(*kinds.Down[*corev1.ConfigMap])) kinds.Down[*corev1.ConfigMap] {
	k := kindstest.Needed()
	for _, f := range change {
		f(&k)
	}
	return k
}

func TestByMetadata(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kinds.Down[*corev1.ConfigMap])
		want   bool
	}{
		"on demand": {func(*kinds.Down[*corev1.ConfigMap]) {}, true},
		"always":    {func(k *kinds.Down[*corev1.ConfigMap]) { k.OnDemand = false }, false},
		"with a status": {func(k *kinds.Down[*corev1.ConfigMap]) {
			k.Status, k.Same = func(kinds.View, *corev1.ConfigMap, *corev1.ConfigMap) {}, func(_, _ *corev1.ConfigMap) bool { return true }
		}, false},
		"with Back": {func(k *kinds.Down[*corev1.ConfigMap]) {
			k.Back = func(kinds.View, *corev1.ConfigMap, *corev1.ConfigMap) {}
		}, false},
		"that refers to others": {func(k *kinds.Down[*corev1.ConfigMap]) {
			k.References = func(*corev1.ConfigMap) []kinds.Reference { return nil }
		}, false},
		"some of which stay": {func(k *kinds.Down[*corev1.ConfigMap]) {
			k.Skip = func(kinds.View, *corev1.ConfigMap) bool { return true }
		}, false},
		"mirrored": {func(k *kinds.Down[*corev1.ConfigMap]) { k.Mirror = &kinds.Mirror[*corev1.ConfigMap]{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := kindstest.Typed(needed(tc.change))
			if got := k.ByMetadata(); got != tc.want {
				t.Errorf("byMetadata = %t, want %t", got, tc.want)
			}
			if _, metadata := k.Watched().(*metav1.PartialObjectMetadata); metadata != tc.want {
				t.Errorf("%T is watched", k.Watched())
			}
		})
	}
	if up := kindstest.Typed(shown()); up.ByMetadata() {
		t.Error("a kind that is synced up is cached by metadata")
	}
}

// large returns an object with the largest metadata that an apiserver accepts.
func large() *metav1.PartialObjectMetadata {
	deleted := metav1.Unix(1, 0)
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "large", UID: "uid", ResourceVersion: "7", Generation: 3,
			DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: new(int64(5)),
			Labels: map[string]string{"app": "web", names.VCName: "blue", names.VCNamespace: "tenants"},
			Annotations: map[string]string{
				corev1.LastAppliedConfigAnnotation: "{}", names.Cluster: "blue-key", names.UID: "tenant-uid", names.Namespace: "default",
				names.Annotations: "a,b", names.OwnerReferences: "[]",
			},
			OwnerReferences: []metav1.OwnerReference{{Name: "owner"}},
			Finalizers:      []string{"example.com/one"},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
	}
}

func TestTrimmed(t *testing.T) {
	requirement, err := labels.NewRequirement(names.VCName, selection.Exists, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := large()
	kept.Labels, kept.Annotations, kept.OwnerReferences, kept.Finalizers, kept.ManagedFields = nil, nil, nil, nil, nil
	marked := *kept
	marked.Labels = map[string]string{names.VCName: "blue", names.VCNamespace: "tenants"}
	marked.Annotations = map[string]string{names.Cluster: "blue-key", names.UID: "tenant-uid", names.Namespace: "default"}
	k, flows := kindstest.Typed(needed()), []kinds.Flow{needed()}
	for side, tc := range map[string]struct {
		objects map[client.Object]cache.ByObject
		answer  func(client.Object) client.Object
		want    *metav1.PartialObjectMetadata
	}{
		"the tenant's":        {kinds.TenantObjects(flows), k.CachedTenant, kept},
		"the super cluster's": {kinds.SuperObjects(flows, *requirement), k.CachedSuper, &marked},
	} {
		for of, held := range tc.objects {
			got, err := held.Transform(large())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s %T: %s", side, of, diff)
			}
			if again, _ := held.Transform(got); !cmp.Equal(got, again) {
				t.Errorf("%s %T: trimmed a second time it is another", side, of)
			}
			full, err := held.Transform(&corev1.ConfigMap{ObjectMeta: large().ObjectMeta, Data: map[string]string{"a": "b"}})
			if cm, ok := full.(*corev1.ConfigMap); err != nil || !ok || cm.Data["a"] != "b" || cm.Labels["app"] != "web" || cm.ManagedFields != nil {
				t.Errorf("%s %T: a watch of whole objects by another client gets %v, %v", side, of, full, err)
			}
		}
		answer := tc.answer(&corev1.ConfigMap{ObjectMeta: large().ObjectMeta, Data: map[string]string{"a": "b"}})
		if diff := cmp.Diff(client.Object(tc.want), answer); len(tc.objects) != 1 || diff != "" {
			t.Errorf("%s: an answer is kept as another than a cache would hold: %s", side, diff)
		}
	}
	if whole := kindstest.Named("web"); kindstest.Typed(kindstest.Plain()).CachedSuper(whole) != client.Object(whole) {
		t.Error("an object of another kind is trimmed")
	}
}

func TestCachedObjects(t *testing.T) {
	narrow := needed()
	narrow.Selector = labels.SelectorFromSet(labels.Set{"a": "b"})
	requirement, err := labels.NewRequirement(names.VCName, selection.Exists, nil)
	if err != nil {
		t.Fatal(err)
	}
	for of, held := range kinds.TenantObjects([]kinds.Flow{kindstest.Plain(), shown(), narrow}) {
		if of != client.Object(narrow.Object) || held.Label.String() != "a=b" {
			t.Errorf("the tenant's cache holds of %T those with %v", of, held.Label)
		}
	}
	for of, held := range kinds.SuperObjects([]kinds.Flow{kindstest.Plain(), shown(), narrow}, *requirement) {
		if of != client.Object(narrow.Object) || held.Label.String() != "a=b,"+names.VCName {
			t.Errorf("the super cluster's cache holds of %T those with %v", of, held.Label)
		}
	}
	if held := kinds.TenantObjects([]kinds.Flow{kindstest.Plain(), shown()}); len(held) > 0 {
		t.Errorf("of kinds that are held whole, something is said: %v", held)
	}
}
