package quota

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/plugintest"
)

// shelf is a cache of fixed objects.
type shelf struct {
	informertest.FakeInformers

	client client.Client
}

var _ cache.Cache = &shelf{}

// Get implements client.Reader.
func (s *shelf) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return s.client.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (s *shelf) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.client.List(ctx, list, opts...)
}

// TestVolumesCountUntilTheyAreGone checks that a volume counts as its claim
// does, and continues to count when the claim or its namespace is deleted.
func TestVolumesCountUntilTheyAreGone(t *testing.T) {
	ctx := t.Context()
	superNamespace := names.SuperNamespace(red.Key, "shop")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: superNamespace, Annotations: map[string]string{names.Cluster: red.Key}}}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: superNamespace, Name: "data", UID: "claim", Annotations: map[string]string{names.Cluster: red.Key},
		},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk", StorageClassName: new("fast")},
	}
	claim.Spec.Resources.Requests = amounts(map[string]string{"storage": "10Gi"})
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "volume"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: amounts(map[string]string{"storage": "10Gi"}), StorageClassName: "fast",
			ClaimRef: &corev1.ObjectReference{Namespace: superNamespace, Name: "data", UID: "claim"},
		},
	}
	there := fake.NewClientBuilder().WithObjects(ns, claim, volume).Build()
	q := New()
	q.env.Cache = &shelf{client: there}
	q.know(virtualCluster(hard("requests.storage", "10Gi")))
	claims := q.countingHandler(ctx, countedKind(plugintest.KindOf(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), claim)))
	counts := func(when, want string) {
		t.Helper()
		used, _ := q.ledger.usedBy(red.Key, "")
		for _, name := range []corev1.ResourceName{"requests.storage", "fast.storageclass.storage.k8s.io/requests.storage"} {
			if got := used[name]; got.String() != want {
				t.Errorf("%s: %s is %s, want %s", when, name, &got, want)
			}
		}
	}

	claims.OnAdd(claim, true)
	if err := q.chargeVolumes(ctx); err != nil {
		t.Fatal(err)
	}
	counts("bound", "10Gi")
	if err := there.Delete(ctx, claim); err != nil {
		t.Fatal(err)
	}
	claims.OnDelete(claim)
	counts("when the claim is gone", "10Gi")
	if err := there.Delete(ctx, ns); err != nil {
		t.Fatal(err)
	}
	q.chargeVolume(ctx, volume)
	counts("when the namespace is gone", "10Gi")

	another := claim.DeepCopy()
	another.UID, another.ResourceVersion = types.UID("another"), ""
	if err := there.Create(ctx, another); err != nil {
		t.Fatal(err)
	}
	claims.OnAdd(another, false)
	counts("beside another claim of the name", "20Gi")
	q.removeVolume(ctx, volume)
	counts("gone", "10Gi")

	given := volume.DeepCopy()
	given.Spec.ClaimRef.UID = "another"
	q.chargeVolume(ctx, given)
	counts("given to the other claim", "10Gi")
	foreign := volume.DeepCopy()
	foreign.Name, foreign.Spec.ClaimRef.Namespace = "other", "platform"
	q.chargeVolume(ctx, foreign)
	counts("beside a volume of the platform", "10Gi")
}
