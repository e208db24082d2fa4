package controllers

import (
	"context"
	"time"

	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/volume/attachdetach"
	"k8s.io/kubernetes/pkg/controller/volume/expand"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/csi"
	"k8s.io/kubernetes/pkg/volume/csimigration"
)

// Settings of the node lifecycle controller: the defaults of
// kube-controller-manager.
const (
	nodeMonitorPeriod     = 5 * time.Second
	nodeStartupGrace      = time.Minute
	nodeMonitorGrace      = 50 * time.Second
	evictionRate          = 0.1
	secondaryEvictionRate = 0.01
	largeCluster          = 50
	unhealthyZone         = 0.55
	attachPeriod          = time.Minute
)

// Kubelet returns the controllers for a super cluster whose nodes
// have kubelets: they detect dead nodes, evict their pods, and attach and
// expand the volumes of CSI drivers.
func Kubelet() []Controller {
	return []Controller{
		{"node-lifecycle-controller", buildNodeLifecycle},
		{"taint-eviction-controller", buildTaintEviction},
		{"persistentvolume-attach-detach-controller", buildAttachDetach},
		{"persistentvolume-expander-controller", buildExpander},
	}
}

func buildNodeLifecycle(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c, err := nodelifecycle.NewNodeLifecycleController(ctx, env.typed.Coordination().V1().Leases(), core.Pods(), core.Nodes(),
		env.typed.Apps().V1().DaemonSets(), env.client, nodeMonitorPeriod, nodeStartupGrace, nodeMonitorGrace,
		evictionRate, secondaryEvictionRate, largeCluster, unhealthyZone)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func buildTaintEviction(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c, err := tainteviction.New(ctx, env.client, core.Pods(), core.Nodes(), "taint-eviction-controller")
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func buildAttachDetach(ctx context.Context, env *Environment) (func(context.Context), error) {
	core, storage := env.typed.Core().V1(), env.typed.Storage().V1()
	c, err := attachdetach.NewAttachDetachController(ctx, env.client, core.Pods(), core.Nodes(), core.PersistentVolumeClaims(),
		core.PersistentVolumes(), storage.CSINodes(), storage.CSIDrivers(), storage.VolumeAttachments(),
		csi.ProbeVolumePlugins(), noFlexVolumes{}, false, attachPeriod, false, attachdetach.DefaultTimerConfig)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func buildExpander(ctx context.Context, env *Environment) (func(context.Context), error) {
	translator := csitranslation.New()
	c, err := expand.NewExpandController(ctx, env.client, env.typed.Core().V1().PersistentVolumeClaims(),
		nil, translator, csimigration.NewPluginManager(translator))
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

// noFlexVolumes disables FlexVolume drivers: they are deprecated, and probing
// for them creates their directory.
type noFlexVolumes struct{}

// Init does nothing.
func (noFlexVolumes) Init() error { return nil }

// Probe finds nothing.
func (noFlexVolumes) Probe() ([]volume.ProbeEvent, error) { return nil, nil }
