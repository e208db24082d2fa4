package doctor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/installation"
)

// defaultClass is the annotation of a default StorageClass.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// storage checks whether the store of an installation gets volumes.
func storage(ctx context.Context, s *Super) Result {
	classes := &storagev1.StorageClassList{}
	if err := s.Client.List(ctx, classes); err != nil {
		return unread(fmt.Errorf("list StorageClasses: %w", err))
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if s.Installation != "" {
		if _, err := (workload{name: installation.Store}).read(ctx, s); apierrors.IsNotFound(err) {
			return skipped("this installation has no store of its own")
		} else if err != nil {
			return unread(err)
		}
		of := client.MatchingLabels{installation.Name: installation.Store}
		if err := s.Client.List(ctx, claims, client.InNamespace(s.Installation), of); err != nil {
			return unread(fmt.Errorf("list the PersistentVolumeClaims of %s: %w", installation.Store, err))
		}
	}
	return storageVerdict(classes.Items, claims.Items)
}

// storageVerdict judges by the claims of the store, if there are any, and
// otherwise by the StorageClass that they will have.
func storageVerdict(classes []storagev1.StorageClass, claims []corev1.PersistentVolumeClaim) Result {
	for i := range claims {
		if c := &claims[i]; c.Status.Phase != corev1.ClaimBound {
			return failed(fmt.Sprintf("See why: kubectl describe persistentvolumeclaim %s -n %s", c.Name, c.Namespace),
				"PersistentVolumeClaim %s of the store has no volume", c.Name)
		}
	}
	if len(claims) > 0 {
		return ok("the store has its volumes")
	}
	var defaults []string
	for i := range classes {
		if classes[i].Annotations[defaultClass] == "true" {
			defaults = append(defaults, classes[i].Name)
		}
	}
	switch len(defaults) {
	case 0:
		return failed("Name a class with vcStore.storage.className, or annotate one with "+defaultClass+"=true. "+
			"An installation without hosted control planes needs none: vcHost.enabled=false",
			"no StorageClass is the default one, so the etcd of hosted control planes gets no volumes")
	case 1:
		return ok("StorageClass %s is the default one", defaults[0])
	}
	return warning("Annotate one of them only with "+defaultClass+"=true",
		"several StorageClasses are the default one, and the newest is used: %s", enumerate(defaults))
}
