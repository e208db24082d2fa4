package controllers

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	volumemetrics "k8s.io/kubernetes/pkg/controller/volume/persistentvolume/metrics"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/controller/volume/vacprotection"
)

// volumeResync is the interval at which pending volumes and claims are
// reconciled again.
const volumeResync = 15 * time.Second

// volumeControllers returns the controllers that bind claims to volumes, create
// the claims of ephemeral volumes, and protect volumes in use. Provisioning is
// left to the CSI drivers of a cluster.
func volumeControllers() []Controller {
	return []Controller{
		{"persistentvolume-binder-controller", buildVolumeBinder},
		{"persistentvolumeclaim-protection-controller", buildClaimProtection},
		{"persistentvolume-protection-controller", buildVolumeProtection},
		{"volumeattributesclass-protection-controller", buildAttributesProtection},
		{"ephemeral-volume-controller", buildEphemeralVolumes},
	}
}

func buildVolumeBinder(ctx context.Context, env *Environment) (func(context.Context), error) {
	volumemetrics.Register(nothing{}, nothing{}, nil)
	core := env.typed.Core().V1()
	c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient:                env.client,
		SyncPeriod:                volumeResync,
		VolumeInformer:            core.PersistentVolumes(),
		ClaimInformer:             core.PersistentVolumeClaims(),
		ClassInformer:             env.typed.Storage().V1().StorageClasses(),
		PodInformer:               core.Pods(),
		NodeInformer:              core.Nodes(),
		EnableDynamicProvisioning: true,
	})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

// nothing lists neither volumes nor claims. Upstream's metrics count those of the
// first controller of the process alone, as long as the process runs, with the
// namespaces and classes as labels.
type nothing struct{}

// List implements volumemetrics.PVLister and volumemetrics.PVCLister.
func (nothing) List() []any { return nil }

func buildClaimProtection(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(), env.client)
	return workers(1, c), err
}

func buildVolumeProtection(ctx context.Context, env *Environment) (func(context.Context), error) {
	c := pvprotection.NewPVProtectionController(klog.FromContext(ctx), env.typed.Core().V1().PersistentVolumes(), env.client)
	return workers(1, c), nil
}

func buildAttributesProtection(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c, err := vacprotection.NewVACProtectionController(klog.FromContext(ctx), env.client, core.PersistentVolumeClaims(),
		core.PersistentVolumes(), env.typed.Storage().V1().VolumeAttributesClasses())
	return workers(1, c), err
}

func buildEphemeralVolumes(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c, err := ephemeral.NewController(ctx, env.client, core.Pods(), core.PersistentVolumeClaims())
	if err != nil {
		return nil, err
	}
	return workers(1, c), nil
}
