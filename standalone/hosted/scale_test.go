package hosted_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/internal/names"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// template is that of a pod which never runs, since there is no node.
func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "example/app:1"}}, RestartPolicy: corev1.RestartPolicyAlways,
		},
	}
}

// makeWorkloads creates a workload of each kind, and a ReplicaSet that another
// object controls.
func makeWorkloads(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	apps, opts := client.AppsV1(), metav1.CreateOptions{}
	_, err := apps.Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector, Template: template()},
	}, opts)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = apps.StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Selector: selector, Template: template()}, // one replica
	}, opts)
	g.Expect(err).NotTo(HaveOccurred())
	for name, replicas := range map[string]int32{"set": 2, "none": 0} {
		_, err = apps.ReplicaSets("default").Create(t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: template()},
		}, opts)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// replicas returns the number of replicas of each workload, with an asterisk if
// it has the annotation.
func replicas(t *testing.T, client kubernetes.Interface) map[string]int32 {
	t.Helper()
	g := NewWithT(t)
	found := map[string]int32{}
	note := func(meta metav1.ObjectMeta, replicas int32) {
		name := meta.Name
		if _, marked := meta.Annotations[names.ReplicasAwake]; marked {
			name += "*"
		}
		if metav1.GetControllerOf(&meta) == nil {
			found[name] = replicas
		}
	}
	deployments, err := client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range deployments.Items {
		note(deployments.Items[i].ObjectMeta, *deployments.Items[i].Spec.Replicas)
	}
	sets, err := client.AppsV1().StatefulSets("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range sets.Items {
		note(sets.Items[i].ObjectMeta, *sets.Items[i].Spec.Replicas)
	}
	replicaSets, err := client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range replicaSets.Items {
		note(replicaSets.Items[i].ObjectMeta, *replicaSets.Items[i].Spec.Replicas)
	}
	return found
}

// untilScaled scales until there is nothing left to do: a workload that changes
// at the same time is scaled by a later call.
func untilScaled(t *testing.T, scale func(context.Context) (int, error)) {
	t.Helper()
	NewWithT(t).Eventually(func() (int, error) { return scale(t.Context()) }, soon).Should(BeZero())
}

// TestScaleDownAndUp: workloads get their replicas back, unless others scaled
// them or the annotation is not valid.
func TestScaleDownAndUp(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "scaled"})
	client := clientOf(t, plane.RESTConfig())
	makeWorkloads(t, client)
	g.Eventually(func() string { return workOf(t, plane).Unfinished }, soon).Should(ContainSubstring("is pending"))

	untilScaled(t, plane.ScaleDown)
	g.Expect(replicas(t, client)).To(Equal(map[string]int32{"web*": 0, "db*": 0, "set*": 0, "none": 0}))
	g.Eventually(func() string { return workOf(t, plane).Unfinished }, soon).Should(BeEmpty())

	apps := client.AppsV1()
	set, err := apps.ReplicaSets("default").Get(t.Context(), "set", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	set.Spec.Replicas = new(int32(1))
	_, err = apps.ReplicaSets("default").Update(t.Context(), set, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	db, err := apps.StatefulSets("default").Get(t.Context(), "db", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	db.Annotations[names.ReplicasAwake] = "-5"
	_, err = apps.StatefulSets("default").Update(t.Context(), db, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	untilScaled(t, plane.ScaleUp)
	g.Expect(replicas(t, client)).To(Equal(map[string]int32{"web": 3, "db": 0, "set": 1, "none": 0}))
}

func workOf(t *testing.T, plane *hosted.ControlPlane) hosted.Work {
	t.Helper()
	work, err := plane.Work(t.Context(), time.Now())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return work
}

// TestWork: what the controllers of a control plane have to do is found in its
// objects.
func TestWork(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "worked"})
	client := clientOf(t, plane.RESTConfig())
	g.Eventually(func() hosted.Work { return workOf(t, plane) }, soon).Should(BeZero())

	cron, err := client.BatchV1().CronJobs("default").Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "yearly"},
		Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: template().Spec.Containers, RestartPolicy: corev1.RestartPolicyNever,
			}},
		}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() time.Time { return workOf(t, plane).Due }, soon).Should(BeTemporally(">", time.Now()))

	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: cron.Spec.JobTemplate.Spec}
	_, err = client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() string { return workOf(t, plane).Unfinished }, soon).Should(Equal("Job default/once runs"))
	g.Expect(client.BatchV1().Jobs("default").Delete(t.Context(), "once", metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})).To(Succeed())
	g.Eventually(func() string { return workOf(t, plane).Unfinished }, soon).Should(BeEmpty())

	kept := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"example.com/kept"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	_, err = client.CoreV1().Services("default").Create(t.Context(), kept, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.CoreV1().Services("default").Delete(t.Context(), "kept", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() bool { return strings.HasSuffix(workOf(t, plane).Unfinished, "default/kept is being deleted") }, soon).Should(BeTrue())
}
