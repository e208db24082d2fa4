package doctor

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Probe describes whether and how the check of NetworkPolicies runs. Only real
// connections prove that something enforces them, so that it creates pods, in a
// namespace that it deletes at the end.
type Probe struct {
	// Enabled runs it.
	Enabled bool
	// Image is the image of kubectl-vc.
	Image string
	// Timeout bounds it.
	Timeout time.Duration
}

const (
	// pollInterval is the interval at which pods are read.
	pollInterval = 500 * time.Millisecond
	// cleanupTimeout bounds the deletion of the namespace of the probe.
	cleanupTimeout = 10 * time.Second
)

// outcome is how the pod of an attempt ended.
type outcome string

const (
	asExpected outcome = "as expected"
	unexpected outcome = "unexpected"
	unknown    outcome = "unknown"
)

// observed is how the attempts to connect ended. The cause is the reason why an outcome is
// unknown.
type observed struct {
	allowed, ingressDenied, egressDenied outcome
	cause                                string
}

// check connects pods with and without policies that deny it.
func (p Probe) check(ctx context.Context, s *Super) Result {
	if !p.Enabled {
		return Result{
			Skipped, "not checked: only connections of pods prove that NetworkPolicies are enforced",
			"Run doctor with --probe, which creates pods in a namespace of their own and deletes it",
		}
	}
	ns := probeNamespace()
	if err := s.Client.Create(ctx, ns); err != nil {
		return unread(fmt.Errorf("create the namespace of the probe: %w", err))
	}
	seen, err := p.observe(ctx, s.Client, ns.Name)
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if deleteErr := s.Client.Delete(cleanup, ns); deleteErr != nil {
		return failed("Delete it: kubectl delete namespace "+ns.Name, "delete the namespace of the probe: %v", deleteErr)
	}
	if err != nil {
		return unread(err)
	}
	return policiesVerdict(seen)
}

// policiesVerdict judges by what the pods of the probe observed.
func policiesVerdict(o observed) Result {
	const next = "Install a network plugin that enforces NetworkPolicies of both directions: without it, tenants' pods reach each other"
	switch {
	case o.allowed == unknown || o.ingressDenied == unknown || o.egressDenied == unknown:
		return failed("Push the image kubectl-vc to where nodes pull it, and name it with --probe-image", "could not be checked: %s", o.cause)
	case o.allowed == unexpected:
		return failed("Repair the network of the cluster", "pods cannot connect to each other, without any NetworkPolicy")
	case o.ingressDenied == unexpected:
		return failed(next, "NetworkPolicies are not enforced: a pod was reached that a policy isolates")
	case o.egressDenied == unexpected:
		return failed(next, "NetworkPolicies are enforced for ingress only: a pod connected that a policy isolates")
	}
	return ok("enforced, for ingress and egress")
}

// observe runs the pods.
func (p Probe) observe(ctx context.Context, c client.Client, namespace string) (observed, error) {
	for _, object := range append(probePolicies(namespace), p.server(namespace, open), p.server(namespace, isolated)) {
		if err := c.Create(ctx, object); err != nil {
			return observed{}, fmt.Errorf("create %T %s of the probe: %w", object, object.GetName(), err)
		}
	}
	addresses := map[string]string{}
	for _, name := range []string{open, isolated} {
		pod, err := awaitPod(ctx, c, client.ObjectKey{Namespace: namespace, Name: name}, func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != ""
		})
		if err != nil || pod.Status.PodIP == "" {
			return undecided(pod), err
		}
		addresses[name] = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(probePort))
	}
	attempts := []*corev1.Pod{
		p.attempt(namespace, "allowed", addresses[open], ExpectOpen, false),
		p.attempt(namespace, "ingress-denied", addresses[isolated], ExpectClosed, false),
		p.attempt(namespace, "egress-denied", addresses[open], ExpectClosed, true),
	}
	for _, pod := range attempts {
		if err := c.Create(ctx, pod); err != nil {
			return observed{}, fmt.Errorf("create pod %s of the probe: %w", pod.Name, err)
		}
	}
	return collect(ctx, c, attempts)
}

// collect waits for the attempts.
func collect(ctx context.Context, c client.Client, attempts []*corev1.Pod) (observed, error) {
	outcomes := make([]outcome, len(attempts))
	for i, attempt := range attempts {
		pod, err := awaitPod(ctx, c, client.ObjectKeyFromObject(attempt), func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		})
		if err != nil {
			return observed{}, err
		}
		outcomes[i] = outcomeOf(pod)
		if outcomes[i] == unknown {
			return undecided(pod), nil
		}
	}
	return observed{allowed: outcomes[0], ingressDenied: outcomes[1], egressDenied: outcomes[2]}, nil
}

// outcomeOf returns the outcome of an attempt. Other exit codes than that of the
// program say nothing about the network.
func outcomeOf(pod *corev1.Pod) outcome {
	for _, c := range pod.Status.ContainerStatuses {
		switch ended := c.State.Terminated; {
		case ended == nil:
		case ended.ExitCode == 0:
			return asExpected
		case ended.ExitCode == ProbeUnexpected:
			return unexpected
		}
	}
	return unknown
}

// undecided describes a pod that did not run.
func undecided(pod *corev1.Pod) observed {
	cause := podTrouble(pod)
	if cause == "" {
		cause = fmt.Sprintf("pod %s did not end in time", pod.Name)
	}
	return observed{allowed: unknown, ingressDenied: unknown, egressDenied: unknown, cause: cause}
}

// awaitPod returns a pod once it is in a state, or when there is no time left to
// wait.
func awaitPod(ctx context.Context, c client.Reader, key client.ObjectKey, reached func(*corev1.Pod) bool) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, key, pod); err != nil {
			return false, err
		}
		return reached(pod), nil
	})
	if err != nil && ctx.Err() == nil {
		return pod, fmt.Errorf("get pod %s of the probe: %w", key, err)
	}
	return pod, nil
}
