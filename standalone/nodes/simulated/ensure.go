package simulated

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

const readyPoll = 20 * time.Millisecond

// ensure creates missing nodes, and deletes this program's nodes beyond count.
func ensure(ctx context.Context, client kubernetes.Interface, count int) error {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("read the version of the super cluster: %w", err)
	}
	for i := 1; i <= count; i++ {
		if err := ensureNode(ctx, client.CoreV1().Nodes(), i, info.GitVersion); err != nil {
			return err
		}
	}
	return removeBeyond(ctx, client, count)
}

func ensureNode(ctx context.Context, nodes typedcorev1.NodeInterface, i int, kubernetes string) error {
	node, err := nodes.Get(ctx, nameOf(i), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nodes.Create(ctx, newNode(i), metav1.CreateOptions{})
	}
	if err == nil && admit(node) {
		node, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("create node %s: %w", nameOf(i), err)
	}
	if node.Status.NodeInfo.KubeletVersion == kubernetes {
		return nil
	}
	describe(&node.Status, node.Name, kubernetes)
	if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update the status of node %s: %w", node.Name, err)
	}
	return nil
}

// admit removes the taint that an apiserver adds to every new node, and reports
// whether it was there. Usually the node lifecycle controller does that, which
// the super cluster lacks.
func admit(node *corev1.Node) bool {
	before := len(node.Spec.Taints)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	return len(node.Spec.Taints) < before
}

// RemoveAll deletes this program's nodes and the pods on them from a cluster
// that is run without them.
func RemoveAll(ctx context.Context, cluster *rest.Config) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("create a client for nodes: %w", err)
	}
	return removeBeyond(ctx, client, 0)
}

// removeBeyond deletes this program's nodes with a number above count, and the
// pods on them, which no other controller would delete.
func removeBeyond(ctx context.Context, client kubernetes.Interface, count int) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: managerLabel + "=" + managerValue})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		if name := nodes.Items[i].Name; indexOf(name) > count {
			if err := remove(ctx, client, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func remove(ctx context.Context, client kubernetes.Interface, name string) error {
	err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		return fmt.Errorf("list pods on node %s: %w", name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)),
			Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete pod %s/%s from node %s: %w", pod.Namespace, pod.Name, name, err)
		}
	}
	return nil
}

// awaitReady waits until count nodes of this program are ready.
func awaitReady(ctx context.Context, client kubernetes.Interface, count int) error {
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: managerLabel + "=" + managerValue})
		if err != nil {
			return false, err
		}
		ready := 0
		for i := range nodes.Items {
			if isReady(&nodes.Items[i]) {
				ready++
			}
		}
		return ready >= count, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %d nodes: %w", count, err)
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
