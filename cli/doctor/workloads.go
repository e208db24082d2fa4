package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
	"github.com/virtualcluster/virtualcluster/internal/version"
)

// workload is a Deployment, or the StatefulSet of the store.
type workload struct {
	name string
	// required reports whether each installation has it.
	required bool
}

// workloads returns the workloads of an installation.
func workloads() []workload {
	all := make([]workload, 0, len(installation.Deployments())+1)
	for _, name := range installation.Deployments() {
		all = append(all, workload{name, name == installation.Manager || name == installation.Syncer})
	}
	return append(all, workload{installation.Store, false})
}

// replicas is how many pods of a workload there are.
type replicas struct {
	wanted, available int32
	images            []string
	// args are those of the first container.
	args []string
}

// check checks whether the pods of the workload are available.
func (w workload) check(ctx context.Context, s *Super) Result {
	r, err := w.read(ctx, s)
	if apierrors.IsNotFound(err) {
		if w.required {
			return failed("Install it again: helm upgrade --install, or kubectl apply -k config/default", "it does not exist")
		}
		return skipped("not a part of this installation")
	}
	if err != nil {
		return unread(err)
	}
	cause := ""
	if r.available < r.wanted {
		if cause, err = s.trouble(ctx, w.name); err != nil {
			return unread(err)
		}
	}
	return replicasVerdict(w.name, s.Installation, *r, cause)
}

// read reads the workload.
func (w workload) read(ctx context.Context, s *Super) (*replicas, error) {
	key := client.ObjectKey{Namespace: s.Installation, Name: w.name}
	if w.name == installation.Store {
		set := &appsv1.StatefulSet{}
		if err := s.Client.Get(ctx, key, set); err != nil {
			return nil, fmt.Errorf("get StatefulSet %s: %w", key, err)
		}
		return replicasOf(set.Spec.Replicas, set.Status.AvailableReplicas, &set.Spec.Template), nil
	}
	deployment := &appsv1.Deployment{}
	if err := s.Client.Get(ctx, key, deployment); err != nil {
		return nil, fmt.Errorf("get Deployment %s: %w", key, err)
	}
	return replicasOf(deployment.Spec.Replicas, deployment.Status.AvailableReplicas, &deployment.Spec.Template), nil
}

func replicasOf(wanted *int32, available int32, template *corev1.PodTemplateSpec) *replicas {
	r := &replicas{wanted: ptr.Deref(wanted, 1), available: available, images: images(template)}
	if containers := template.Spec.Containers; len(containers) > 0 {
		r.args = containers[0].Args
	}
	return r
}

// replicasVerdict judges by the replicas that are available, and by what is wrong
// with one that is not.
func replicasVerdict(name, namespace string, r replicas, cause string) Result {
	next := fmt.Sprintf("See its pods and their logs: kubectl get pods -n %s -l %s=%s", namespace, installation.Name, name)
	message := fmt.Sprintf("%d of %d replicas are available", r.available, r.wanted)
	if cause != "" {
		message += ": " + cause
	}
	switch {
	case r.wanted == 0:
		return failed("Scale it up, such as by helm upgrade with replicas=2; it is in the namespace "+namespace,
			"it is scaled to zero")
	case r.available == 0:
		return failed(next, "%s", message)
	case r.available < r.wanted:
		return warning(next, "%s", message)
	}
	return ok("%s", message)
}

// trouble returns what is wrong with a pod of a component that is not ready;
// empty if no pod says it.
func (s *Super) trouble(ctx context.Context, component string) (string, error) {
	pods := &corev1.PodList{}
	of := client.MatchingLabels{installation.Name: component}
	if err := s.Client.List(ctx, pods, client.InNamespace(s.Installation), of); err != nil {
		return "", fmt.Errorf("list the pods of %s: %w", component, err)
	}
	for i := range pods.Items {
		if cause := podTrouble(&pods.Items[i]); cause != "" {
			return cause, nil
		}
	}
	return "", nil
}

// podTrouble returns why a pod is not ready; empty if it is, or does not say.
func podTrouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.Ready:
		case c.State.Waiting != nil && c.State.Waiting.Reason != "ContainerCreating":
			return describeTrouble(pod.Name, c.State.Waiting.Reason, c.State.Waiting.Message)
		case c.State.Terminated != nil:
			return describeTrouble(pod.Name, c.State.Terminated.Reason, c.State.Terminated.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return describeTrouble(pod.Name, c.Reason, c.Message)
		}
	}
	return ""
}

func describeTrouble(pod, reason, message string) string {
	text := fmt.Sprintf("pod %s: %s", pod, cmp.Or(reason, "not ready"))
	if message != "" {
		text += ": " + terminal.Line(message)
	}
	return text
}

// images returns the images of a pod.
func images(template *corev1.PodTemplateSpec) []string {
	names := make([]string, 0, len(template.Spec.Containers))
	for _, c := range template.Spec.Containers {
		names = append(names, c.Image)
	}
	return names
}

// versions compares the versions of the images with that of kubectl vc.
func versions(ctx context.Context, s *Super) Result {
	tags := map[string]string{}
	for _, w := range workloads() {
		r, err := w.read(ctx, s)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return unread(err)
		}
		if tag := tagOf(r.images[0]); tag != "" {
			tags[w.name] = tag
		}
	}
	return versionsVerdict(version.String(), tags)
}

// tagOf returns the tag of an image; empty if it has none.
func tagOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[i+1:]
	}
	return ""
}

// versionsVerdict compares tags of images, by component, with the version of
// kubectl vc.
func versionsVerdict(client string, tags map[string]string) Result {
	var others []string
	for _, w := range workloads() {
		if tag := tags[w.name]; tag != "" && strings.TrimPrefix(tag, "v") != strings.TrimPrefix(client, "v") {
			others = append(others, w.name+" "+tag)
		}
	}
	if len(others) == 0 {
		return ok("the components and kubectl vc have version %s", client)
	}
	return warning("Upgrade the older ones; all parts of a release are tested together",
		"kubectl vc has version %s, and there are %s", client, enumerate(others))
}
