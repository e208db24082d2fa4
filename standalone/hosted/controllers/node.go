package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/podgc"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// podGCThreshold is how many finished pods are kept before the oldest are
// deleted.
const podGCThreshold = 12500

// nodeControllers returns the controllers for nodes and the pods on them. Node
// lifecycle and taint eviction are missing on purpose: simulated nodes run in
// this process, so a late heartbeat says nothing about them.
func nodeControllers() []Controller {
	return []Controller{
		DaemonSets(),
		{"pod-garbage-collector-controller", buildPodGC},
		{"resourceclaim-controller", buildResourceClaims},
		{"kube-scheduler", buildScheduler},
	}
}

func buildDaemonSets(ctx context.Context, env *Environment) (func(context.Context), error) {
	core, apps := env.typed.Core().V1(), env.typed.Apps().V1()
	c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(),
		env.client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	return workers(2, c), err
}

func buildPodGC(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	return podgc.NewPodGC(ctx, env.client, core.Pods(), core.Nodes(), podGCThreshold).Run, nil
}

// buildResourceClaims builds the controller that creates claims from templates
// and deallocates unused devices. Pod groups are behind a feature gate that is
// off.
func buildResourceClaims(ctx context.Context, env *Environment) (func(context.Context), error) {
	devices := env.typed.Resource().V1()
	c, err := resourceclaim.NewController(klog.FromContext(ctx), resourceclaim.Features{PrioritizedList: true}, env.client,
		env.typed.Core().V1().Pods(), nil, devices.ResourceClaims(), devices.ResourceClaimTemplates())
	return workers(2, c), err
}

// buildScheduler builds the scheduler with its default configuration, and
// informers of its own, which exclude finished pods.
func buildScheduler(ctx context.Context, env *Environment) (func(context.Context), error) {
	informers := scheduler.NewInformerFactory(env.client, resync)
	broadcaster := events.NewEventBroadcasterAdapter(env.client)
	recorders := profile.RecorderFactory(func(name string) events.EventRecorderLogger { return broadcaster.NewRecorder(name) })
	s, err := scheduler.New(ctx, env.client, informers, nil, recorders, scheduler.WithKubeConfig(env.config))
	if err != nil {
		return nil, fmt.Errorf("configure the scheduler: %w", err)
	}
	return func(ctx context.Context) {
		defer informers.Shutdown()
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(ctx.Done())
		informers.Start(ctx.Done())
		informers.WaitForCacheSync(ctx.Done())
		if err := s.WaitForHandlersSync(ctx); err == nil {
			s.Run(ctx)
		}
	}, nil
}
