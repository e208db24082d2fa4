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
	// identity holds the nodes' leases. It is the same at every start: the data directory admits one process at a time,
	// which need not wait for the leases of its predecessor.
	identity = "vc-standalone"
	// leaseSeconds makes for a heartbeat every 40 seconds. Nothing in the super cluster waits for it.
	leaseSeconds = 160
	// parallelism is how many pods are started or ended at a time. Each node has a kubelet in a real cluster, and none waits for another's
	// requests: with fewer, the nodes are what all pods wait for.
	parallelism = 16
)

// Run makes count nodes in the cluster, starts to play their part, and returns when they are ready. They stay alive until
// ctx ends. What kwok has to say goes to logs.
func Run(ctx context.Context, cluster *rest.Config, count int, logs io.Writer) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("make a client for nodes: %w", err)
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

// templateFuncs replaces kwok's own choice of the pods' addresses, which forgets at a restart what is in use.
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

// stages are the steps that nodes and pods go through, by kind: kwok's defaults, but that no pod is deleted twice.
func stages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	byKind := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, manifest := range []string{
		fast.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](manifest)
		if err != nil {
			return nil, fmt.Errorf("read a stage: %w", err)
		}
		if manifest == podfast.DefaultPodDelete {
			stage.Spec.Selector.MatchExpressions = append(stage.Spec.Selector.MatchExpressions, hasTimeToEnd())
		}
		byKind[stage.Spec.ResourceRef] = append(byKind[stage.Spec.ResourceRef], stage)
	}
	return byKind, nil
}

// hasTimeToEnd leaves out pods that an apiserver is about to drop. On the way it says of each that its time is up; kwok would take that for
// something to do, and delete as many pods again before it looks at others.
func hasTimeToEnd() internalversion.MatchExpression {
	return internalversion.MatchExpression{JQ: &internalversion.SelectorJQ{
		Key: ".metadata.deletionGracePeriodSeconds | tostring", Operator: internalversion.SelectorOpNotIn, Values: []string{"0"},
	}}
}
