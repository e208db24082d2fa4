package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// workload is an object with a number of replicas, which no other object
// controls.
type workload struct {
	metav1.ObjectMeta

	kind     string
	replicas int32
	patch    func(ctx context.Context, patch []byte) error
}

// ScaleDown scales the workloads of the control plane to zero, and returns how
// many it scaled. An annotation has the number of their replicas. It may be
// called once the control plane is ready.
func (c *ControlPlane) ScaleDown(ctx context.Context) (scaled int, err error) {
	return c.scale(ctx, (*workload).down)
}

// ScaleUp scales workloads back that ScaleDown has scaled to zero, unless they
// were scaled by others meanwhile.
func (c *ControlPlane) ScaleUp(ctx context.Context) (scaled int, err error) {
	return c.scale(ctx, (*workload).up)
}

// down returns the number of replicas and the annotation of a workload that is
// scaled to zero; false if it is already.
func (w *workload) down() (replicas int32, annotation *string, ok bool) {
	if w.replicas == 0 {
		return 0, nil, false
	}
	return 0, new(strconv.Itoa(int(w.replicas))), true
}

// up returns the number of replicas of a workload that was scaled to zero, and
// deletes the annotation; false if it was not.
func (w *workload) up() (replicas int32, annotation *string, ok bool) {
	before, marked := w.Annotations[names.ReplicasAwake]
	if !marked {
		return 0, nil, false
	}
	was, err := strconv.ParseInt(before, 10, 32)
	if err != nil || was < 0 || w.replicas != 0 {
		was = int64(w.replicas)
	}
	return int32(was), nil, true
}

// scale patches the workloads for which decide returns true. One that changes
// at the same time is decided about again by the next call.
func (c *ControlPlane) scale(ctx context.Context, decide func(*workload) (int32, *string, bool)) (scaled int, err error) {
	all, err := c.workloads(ctx)
	if err != nil {
		return 0, err
	}
	for i := range all {
		w := &all[i]
		replicas, annotation, ok := decide(w)
		if !ok {
			continue
		}
		scaled++
		failed := w.set(ctx, replicas, annotation)
		if failed != nil && !apierrors.IsConflict(failed) && !apierrors.IsNotFound(failed) {
			err = errors.Join(err, fmt.Errorf("scale %s %s/%s: %w", w.kind, w.Namespace, w.Name, failed))
		}
	}
	return scaled, err
}

// set patches the number of replicas and the annotation; nil deletes it.
func (w *workload) set(ctx context.Context, replicas int32, annotation *string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": w.ResourceVersion, "uid": w.UID,
			"annotations": map[string]any{names.ReplicasAwake: annotation},
		},
		"spec": map[string]any{"replicas": replicas},
	})
	if err != nil {
		return err
	}
	return w.patch(ctx, patch)
}

// workloads returns the Deployments, StatefulSets and ReplicaSets that no other
// object controls.
func (c *ControlPlane) workloads(ctx context.Context) (all []workload, err error) {
	apps, opts := c.loopback.AppsV1(), metav1.ListOptions{ResourceVersion: "0"}
	deployments, err := apps.Deployments("").List(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range deployments.Items {
		all = append(all, workload{d.ObjectMeta, "Deployment", replicasOf(d.Spec.Replicas), func(ctx context.Context, patch []byte) error {
			_, err := apps.Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}})
	}
	sets, err := apps.StatefulSets("").List(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	for _, s := range sets.Items {
		all = append(all, workload{s.ObjectMeta, "StatefulSet", replicasOf(s.Spec.Replicas), func(ctx context.Context, patch []byte) error {
			_, err := apps.StatefulSets(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}})
	}
	replicaSets, err := apps.ReplicaSets("").List(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	for _, r := range replicaSets.Items {
		all = append(all, workload{r.ObjectMeta, "ReplicaSet", replicasOf(r.Spec.Replicas), func(ctx context.Context, patch []byte) error {
			_, err := apps.ReplicaSets(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}})
	}
	return withoutController(all), nil
}

// withoutController keeps the workloads that no other object controls: those of
// an operator would be scaled back by it, and it is scaled itself.
func withoutController(all []workload) (free []workload) {
	for i := range all {
		if metav1.GetControllerOf(&all[i]) == nil {
			free = append(free, all[i])
		}
	}
	return free
}
