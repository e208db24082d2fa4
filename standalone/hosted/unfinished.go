package hosted

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Work is what the controllers of a control plane have to do.
type Work struct {
	// Unfinished describes an object that is not as it should be yet; empty if
	// there is none.
	Unfinished string
	// Due is when the next CronJob is due, or a finished Job expires; zero if
	// there is nothing.
	Due time.Time
}

// Work returns what the controllers of the control plane have to do. It may be
// called once the control plane is ready.
func (c *ControlPlane) Work(ctx context.Context, now time.Time) (Work, error) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	work := Work{}
	for _, find := range []func(context.Context, metav1.ListOptions, time.Time, *Work) error{
		c.findRollouts, c.findJobs, c.findCronJobs, c.findAutoscalers, c.findDeletions, c.findPods,
	} {
		if err := find(ctx, cached, now, &work); err != nil || work.Unfinished != "" {
			return work, err
		}
	}
	return work, nil
}

// note records an object with unfinished work, and reports whether it has any.
func (w *Work) note(kind string, meta metav1.ObjectMeta, why string) bool {
	if why == "" && !meta.DeletionTimestamp.IsZero() {
		why = "is being deleted"
	}
	if why == "" {
		return false
	}
	w.Unfinished = fmt.Sprintf("%s %s %s", kind, strings.TrimPrefix(meta.Namespace+"/"+meta.Name, "/"), why)
	return true
}

// due records a time at which work begins.
func (w *Work) due(at time.Time) {
	if !at.IsZero() && (w.Due.IsZero() || at.Before(w.Due)) {
		w.Due = at
	}
}

func (c *ControlPlane) findRollouts(ctx context.Context, opts metav1.ListOptions, _ time.Time, work *Work) error {
	apps := c.loopback.AppsV1()
	deployments, err := apps.Deployments("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for i := range deployments.Items {
		if work.note("Deployment", deployments.Items[i].ObjectMeta, unfinishedDeployment(&deployments.Items[i])) {
			return nil
		}
	}
	sets, err := apps.StatefulSets("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	for i := range sets.Items {
		if work.note("StatefulSet", sets.Items[i].ObjectMeta, unfinishedStatefulSet(&sets.Items[i])) {
			return nil
		}
	}
	replicas, err := apps.ReplicaSets("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list ReplicaSets: %w", err)
	}
	for i := range replicas.Items {
		if work.note("ReplicaSet", replicas.Items[i].ObjectMeta, unfinishedReplicaSet(&replicas.Items[i])) {
			return nil
		}
	}
	daemons, err := apps.DaemonSets("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list DaemonSets: %w", err)
	}
	for i := range daemons.Items {
		if work.note("DaemonSet", daemons.Items[i].ObjectMeta, unfinishedDaemonSet(&daemons.Items[i])) {
			return nil
		}
	}
	return nil
}

const (
	notObserved = "has changed"
	inRollout   = "is being rolled out"
)

// unfinishedDeployment returns why a Deployment is unfinished; empty if it is
// finished. Pods that fail do not make it unfinished: nothing is done about them
// here.
func unfinishedDeployment(d *appsv1.Deployment) string {
	want := replicasOf(d.Spec.Replicas)
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return notObserved
	case d.Status.Replicas != want && !d.Spec.Paused, d.Status.UpdatedReplicas != want && !d.Spec.Paused:
		return inRollout
	}
	return ""
}

func unfinishedStatefulSet(s *appsv1.StatefulSet) string {
	want := replicasOf(s.Spec.Replicas)
	switch {
	case s.Status.ObservedGeneration < s.Generation:
		return notObserved
	case s.Status.Replicas != want:
		return inRollout
	case s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return ""
	case s.Status.UpdatedReplicas < want-partitionOf(s):
		return inRollout
	}
	return ""
}

// partitionOf returns how many replicas a rollout leaves as they are.
func partitionOf(s *appsv1.StatefulSet) int32 {
	if update := s.Spec.UpdateStrategy.RollingUpdate; update != nil && update.Partition != nil {
		return *update.Partition
	}
	return 0
}

func unfinishedReplicaSet(r *appsv1.ReplicaSet) string {
	switch {
	case r.Status.ObservedGeneration < r.Generation:
		return notObserved
	case r.Status.Replicas != replicasOf(r.Spec.Replicas):
		return "is being scaled"
	}
	return ""
}

func unfinishedDaemonSet(d *appsv1.DaemonSet) string {
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return notObserved
	case d.Status.CurrentNumberScheduled < d.Status.DesiredNumberScheduled:
		return inRollout
	case d.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType &&
		d.Status.UpdatedNumberScheduled < d.Status.DesiredNumberScheduled:
		return inRollout
	}
	return ""
}

func replicasOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

func (c *ControlPlane) findJobs(ctx context.Context, opts metav1.ListOptions, _ time.Time, work *Work) error {
	jobs, err := c.loopback.BatchV1().Jobs("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	for i := range jobs.Items {
		why, expires := unfinishedJob(&jobs.Items[i])
		if work.note("Job", jobs.Items[i].ObjectMeta, why) {
			return nil
		}
		work.due(expires)
	}
	return nil
}

// unfinishedJob returns why a Job is unfinished and, for one that is finished,
// when it expires.
func unfinishedJob(j *batchv1.Job) (why string, expires time.Time) {
	for _, condition := range j.Status.Conditions {
		finished := condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed
		if !finished || condition.Status != corev1.ConditionTrue {
			continue
		}
		if ttl := j.Spec.TTLSecondsAfterFinished; ttl != nil {
			expires = condition.LastTransitionTime.Add(time.Duration(*ttl) * time.Second)
		}
		return "", expires
	}
	if j.Spec.Suspend != nil && *j.Spec.Suspend && j.Status.Active == 0 {
		return "", time.Time{}
	}
	return "runs", time.Time{}
}

func (c *ControlPlane) findCronJobs(ctx context.Context, opts metav1.ListOptions, now time.Time, work *Work) error {
	jobs, err := c.loopback.BatchV1().CronJobs("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list CronJobs: %w", err)
	}
	for i := range jobs.Items {
		if work.note("CronJob", jobs.Items[i].ObjectMeta, "") {
			return nil
		}
		work.due(dueCronJob(&jobs.Items[i], now))
	}
	return nil
}

// dueCronJob returns when a CronJob is due next; zero for one that never is.
// The CronJob controller tells the tenant of a schedule that is not valid.
func dueCronJob(c *batchv1.CronJob, now time.Time) time.Time {
	if c.Spec.Suspend != nil && *c.Spec.Suspend {
		return time.Time{}
	}
	if zone := c.Spec.TimeZone; zone != nil {
		location, err := time.LoadLocation(*zone)
		if err != nil {
			return time.Time{}
		}
		now = now.In(location)
	}
	schedule, err := cron.ParseStandard(c.Spec.Schedule)
	if err != nil {
		return time.Time{}
	}
	return schedule.Next(now)
}

// findAutoscalers finds HorizontalPodAutoscalers, whose controller compares
// metrics all the time.
func (c *ControlPlane) findAutoscalers(ctx context.Context, opts metav1.ListOptions, _ time.Time, work *Work) error {
	all, err := c.loopback.AutoscalingV2().HorizontalPodAutoscalers("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	for i := range all.Items {
		if work.note("HorizontalPodAutoscaler", all.Items[i].ObjectMeta, unfinishedAutoscaler(&all.Items[i])) {
			return nil
		}
	}
	return nil
}

func unfinishedAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) string {
	if replicasOf(h.Spec.MinReplicas) == h.Spec.MaxReplicas {
		return ""
	}
	return "scales by metrics"
}

// findDeletions finds deletions that are in progress, of kinds that the other
// functions do not list.
func (c *ControlPlane) findDeletions(ctx context.Context, opts metav1.ListOptions, _ time.Time, work *Work) error {
	core := c.loopback.CoreV1()
	namespaces, err := core.Namespaces().List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list Namespaces: %w", err)
	}
	for i := range namespaces.Items {
		if work.note("Namespace", namespaces.Items[i].ObjectMeta, "") {
			return nil
		}
	}
	claims, err := core.PersistentVolumeClaims("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	for i := range claims.Items {
		if work.note("PersistentVolumeClaim", claims.Items[i].ObjectMeta, "") {
			return nil
		}
	}
	services, err := core.Services("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	for i := range services.Items {
		if work.note("Service", services.Items[i].ObjectMeta, "") {
			return nil
		}
	}
	return nil
}

func (c *ControlPlane) findPods(ctx context.Context, opts metav1.ListOptions, _ time.Time, work *Work) error {
	pods, err := c.loopback.CoreV1().Pods("").List(ctx, opts)
	if err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		if work.note("Pod", pods.Items[i].ObjectMeta, unfinishedPod(&pods.Items[i])) {
			return nil
		}
	}
	return nil
}

func unfinishedPod(p *corev1.Pod) string {
	if p.Status.Phase == corev1.PodPending || p.Status.Phase == "" {
		return "is pending"
	}
	return ""
}
