package controllers

import (
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

// workloadControllers returns the controllers that create pods.
func workloadControllers() []Controller {
	return []Controller{
		{"deployment-controller", buildDeployments},
		{"replicaset-controller", buildReplicaSets},
		{"replicationcontroller-controller", buildReplicationControllers},
		{"statefulset-controller", buildStatefulSets},
		{"job-controller", buildJobs},
		{"cronjob-controller", buildCronJobs},
		{"ttl-after-finished-controller", buildTTLAfterFinished},
		{"disruption-controller", buildDisruption},
		{"horizontal-pod-autoscaler-controller", buildAutoscaler},
	}
}

// workers adapts a controller with the usual signature of Run.
func workers(count int, c interface {
	Run(ctx context.Context, workers int)
}) func(context.Context) {
	return func(ctx context.Context) { c.Run(ctx, count) }
}

func buildDeployments(ctx context.Context, env *Environment) (func(context.Context), error) {
	apps := env.typed.Apps().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), env.typed.Core().V1().Pods(), env.client)
	return workers(5, c), err
}

func buildReplicaSets(ctx context.Context, env *Environment) (func(context.Context), error) {
	c := replicaset.NewReplicaSetController(ctx, env.typed.Apps().V1().ReplicaSets(), env.typed.Core().V1().Pods(),
		env.client, replicaset.BurstReplicas)
	return workers(5, c), nil
}

func buildReplicationControllers(ctx context.Context, env *Environment) (func(context.Context), error) {
	core := env.typed.Core().V1()
	c := replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), env.client, replication.BurstReplicas)
	return workers(2, c), nil
}

func buildStatefulSets(ctx context.Context, env *Environment) (func(context.Context), error) {
	core, apps := env.typed.Core().V1(), env.typed.Apps().V1()
	c := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
		apps.ControllerRevisions(), env.client)
	return workers(5, c), nil
}

func buildJobs(ctx context.Context, env *Environment) (func(context.Context), error) {
	// Workloads and pod groups are behind a feature gate that is off.
	c, err := job.NewController(ctx, env.client, env.typed.Core().V1().Pods(), env.typed.Batch().V1().Jobs(), nil, nil)
	return workers(5, c), err
}

func buildCronJobs(ctx context.Context, env *Environment) (func(context.Context), error) {
	batch := env.typed.Batch().V1()
	c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), env.client)
	return workers(2, c), err
}

func buildTTLAfterFinished(ctx context.Context, env *Environment) (func(context.Context), error) {
	return workers(2, ttlafterfinished.New(ctx, env.typed.Batch().V1().Jobs(), env.client)), nil
}

func buildDisruption(ctx context.Context, env *Environment) (func(context.Context), error) {
	kinds := scale.NewDiscoveryScaleKindResolver(env.client.Discovery())
	scales, err := scale.NewForConfig(env.config, env.restMapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, err
	}
	core, apps := env.typed.Core().V1(), env.typed.Apps().V1()
	c := disruption.NewDisruptionController(ctx, core.Pods(), env.typed.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(),
		env.client, env.restMapper, scales, env.client.Discovery())
	return c.Run, nil
}
