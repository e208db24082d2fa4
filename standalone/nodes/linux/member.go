package linux

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const readyPoll = 100 * time.Millisecond

// AwaitReady waits until the node is ready according to a report after since.
func AwaitReady(ctx context.Context, cluster *rest.Config, since time.Time) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("create a client for nodes: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && isReady(node, since) && len(node.Spec.Taints) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for node %s: %w", Name, err)
	}
	return nil
}

func isReady(node *corev1.Node, since time.Time) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && condition.LastHeartbeatTime.After(since)
		}
	}
	return false
}

// Forget deletes the node from a cluster that is run without it.
func Forget(ctx context.Context, cluster *rest.Config) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("create a client for nodes: %w", err)
	}
	err = client.CoreV1().Nodes().Delete(ctx, Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", Name, err)
	}
	return nil
}
