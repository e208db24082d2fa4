// Package volumes makes the volumes of a super cluster with a real node:
// directories on that node.
package volumes

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/virtualcluster/virtualcluster/internal/component"
)

// provisionerName is who makes the volumes, as StorageClasses name it.
const provisionerName = "local.virtualcluster"

// Run offers the volumes to all tenants, as a StorageClass, and makes and
// removes them until ctx ends.
func Run(ctx context.Context, super *rest.Config, dir Directory, log logr.Logger) error {
	options := component.Options{Logger: log}
	mgr, err := ctrl.NewManager(super, options.Manager("volumes", clientgoscheme.Scheme))
	if err != nil {
		return fmt.Errorf("set up the provisioner of volumes: %w", err)
	}
	if err := offer(ctx, mgr.GetClient()); err != nil {
		return err
	}
	if err := dir.make(); err != nil {
		return err
	}
	if err := control(mgr, dir); err != nil {
		return fmt.Errorf("set up the provisioner of volumes: %w", err)
	}
	return mgr.Start(ctx)
}

// control adds the two controllers: one for claims, one for volumes whose
// claims are gone.
func control(mgr ctrl.Manager, dir Directory) error {
	c := mgr.GetClient()
	claims := reconcile.AsReconciler(c, &claims{client: c, events: mgr.GetEventRecorder(provisionerName), dir: dir})
	released := reconcile.AsReconciler(c, &released{client: c, dir: dir})
	return errors.Join(
		ctrl.NewControllerManagedBy(mgr).For(&corev1.PersistentVolumeClaim{}).Complete(claims),
		ctrl.NewControllerManagedBy(mgr).For(&corev1.PersistentVolume{}).Complete(released),
	)
}
