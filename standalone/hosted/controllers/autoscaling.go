package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourcemetrics "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// Settings of the horizontal pod autoscaler: the defaults of
// kube-controller-manager.
const (
	autoscalerPeriod       = 15 * time.Second
	downscaleStabilization = 5 * time.Minute
	autoscalerTolerance    = 0.1
	cpuInitialization      = 5 * time.Minute
	initialReadinessDelay  = 30 * time.Second
	autoscalerWorkers      = 5
)

func buildAutoscaler(ctx context.Context, env *Environment) (func(context.Context), error) {
	scales, err := scale.NewForConfig(env.config, env.restMapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(env.client.Discovery()))
	if err != nil {
		return nil, err
	}
	versions := custom_metrics.NewAvailableAPIsGetter(env.client.Discovery())
	figures, err := autoscalerMetrics(env, versions)
	if err != nil {
		return nil, err
	}
	c := podautoscaler.NewHorizontalController(ctx, env.client.CoreV1(), scales, env.client.AutoscalingV2(), env.restMapper, figures,
		env.typed.Autoscaling().V2().HorizontalPodAutoscalers(), env.typed.Core().V1().Pods(), autoscalerPeriod,
		downscaleStabilization, autoscalerTolerance, cpuInitialization, initialReadinessDelay)
	return func(ctx context.Context) {
		var invalidating sync.WaitGroup
		defer invalidating.Wait()
		invalidating.Go(func() { custom_metrics.PeriodicallyInvalidate(versions, autoscalerPeriod, ctx.Done()) })
		c.Run(ctx, autoscalerWorkers)
	}, nil
}

// autoscalerMetrics returns a client of the metrics APIs, which aggregated
// servers provide in the tenant's cluster.
func autoscalerMetrics(env *Environment, versions custom_metrics.AvailableAPIsGetter) (metrics.MetricsClient, error) {
	resources, err := resourcemetrics.NewForConfig(env.config)
	if err != nil {
		return nil, fmt.Errorf("create a client of resource metrics: %w", err)
	}
	external, err := external_metrics.NewForConfig(env.config)
	if err != nil {
		return nil, fmt.Errorf("create a client of external metrics: %w", err)
	}
	return metrics.NewRESTMetricsClient(resources, custom_metrics.NewForConfig(env.config, env.restMapper, versions), external), nil
}
