package simulated

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

const (
	// identity is the holder of the nodes' leases. It is the same at every
	// start: the lock of the data directory admits one process at a time, which
	// need not wait for the leases of its predecessor to expire.
	identity = "vc-standalone"
	// leaseSeconds makes for a heartbeat every 40 seconds. Nothing in the super
	// cluster depends on it.
	leaseSeconds = 160
	// parallelism is how many pods are started or stopped at a time. In a real
	// cluster each node has a kubelet, which does not wait for another's
	// requests: with fewer, the simulation would be the bottleneck.
	parallelism = 16
)

// Run creates count nodes in the cluster, simulates them until ctx ends, and
// returns when they are ready. The output of kwok goes to logs.
func Run(ctx context.Context, cluster *rest.Config, count int, logs io.Writer) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("create a client for nodes: %w", err)
	}
	if err := ensure(ctx, client, count); err != nil {
		return err
	}
	kwok, err := newKwok(ctx, client)
	if err != nil {
		return fmt.Errorf("set up kwok: %w", err)
	}
	if err := kwok.Start(log.NewContext(ctx, log.NewLogger(logs, log.LevelWarn))); err != nil {
		return fmt.Errorf("start kwok: %w", err)
	}
	go endLeft(ctx, client)
	return awaitReady(ctx, client, count)
}

func newKwok(ctx context.Context, client kubernetes.Interface) (*controllers.Controller, error) {
	stages, err := stages()
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return controllers.NewController(controllers.Config{
		Clock:                             clock.RealClock{},
		TypedClient:                       client,
		RESTClient:                        client.Discovery().RESTClient(),
		ManageNodesWithAnnotationSelector: fakeAnnotation + "=" + fakeValue,
		CIDR:                              PodNetwork,
		LocalStages:                       stages,
		PodPlayStageParallelism:           parallelism,
		NodePlayStageParallelism:          1,
		NodeLeaseParallelism:              1,
		NodeLeaseDurationSeconds:          leaseSeconds,
		PodsOnNodeSyncParallelism:         1,
		ID:                                identity,
		FuncMap:                           templateFuncs(used(pods.Items)),
	})
}

// templateFuncs replaces kwok's allocation of pod addresses, which forgets
// those in use at a restart.
func templateFuncs(free *addresses) gotpl.FuncMap {
	return gotpl.FuncMap{
		"NodeIPsWith": func(node string) []string { return []string{addressOf(node)} },
		"PodIPsWith": func(node string, hostNetwork bool, _, _, _ string) []string {
			if hostNetwork {
				return []string{addressOf(node)}
			}
			return []string{free.next()}
		},
	}
}

// stages returns the stages of nodes and pods by kind: kwok's defaults, except
// that no pod is deleted twice.
func stages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	byKind := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, manifest := range []string{
		fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](manifest)
		if err != nil {
			return nil, fmt.Errorf("parse a stage: %w", err)
		}
		if manifest == podfast.DefaultPodDelete {
			stage.Spec.Selector.MatchExpressions = append(stage.Spec.Selector.MatchExpressions, hasTimeToEnd())
		}
		byKind[stage.Spec.ResourceRef] = append(byKind[stage.Spec.ResourceRef], stage)
	}
	return byKind, nil
}

// hasTimeToEnd excludes pods that an apiserver is about to remove. Before, it
// sets their grace period to zero; kwok would take that for work, and delete
// each of them again before it handles others.
func hasTimeToEnd() internalversion.MatchExpression {
	return internalversion.MatchExpression{JQ: &internalversion.SelectorJQ{
		Key: ".metadata.deletionGracePeriodSeconds | tostring", Operator: internalversion.SelectorOpNotIn, Values: []string{"0"},
	}}
}
