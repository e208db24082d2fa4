package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// TestStorageClass checks that parameters and mount options are not synced up.
func TestStorageClass(t *testing.T) {
	isDefault := map[string]string{
		"storageclass.kubernetes.io/is-default-class": "true", "storageclass.beta.kubernetes.io/is-default-class": "false",
	}
	super := superClass(&storagev1.StorageClass{}, isDefault)
	super.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-namespace": "storage-system", "pool": "ssd-7"}
	expression := corev1.TopologySelectorLabelRequirement{Key: "text-5", Values: []string{"text-6", "text-6"}}
	term := corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{expression, expression}}
	want := &storagev1.StorageClass{
		ObjectMeta:           classMeta(isDefault),
		Provisioner:          "text-1",
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimPolicy("text-2")),
		VolumeBindingMode:    new(storagev1.VolumeBindingMode("text-2")),
		AllowVolumeExpansion: new(true),
		AllowedTopologies:    []corev1.TopologySelectorTerm{term, term},
	}
	testClass(t, StorageClass(), super, want,
		func(c *storagev1.StorageClass) { c.Provisioner = "other" },
		func(c *storagev1.StorageClass) { c.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) },
		func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil },
		func(c *storagev1.StorageClass) { c.Parameters = map[string]string{"pool": "mine"} },
	)
}
