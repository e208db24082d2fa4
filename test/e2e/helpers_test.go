package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// agnhost serves, connects and waits; busybox runs scripts. The node has them both.
	agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	busybox = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
	// port is where agnhost serves.
	port = 8080
)

// newNamespace makes a namespace in a tenant for a spec, in which pods can be made.
func newNamespace(ctx context.Context, t *local.Tenant) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	create(ctx, t, ns)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(t.Client.Delete(ctx, ns))).To(Succeed()) })
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "default"}}
	Eventually(get).WithContext(ctx).WithArguments(t, account).Should(Succeed())
	return ns.Name
}

func create(ctx context.Context, t *local.Tenant, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(t.Client.Create(ctx, object)).To(Succeed())
	}
}

// get brings a tenant's object up to date.
func get(ctx context.Context, t *local.Tenant, object client.Object) error {
	return t.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
}

// read returns a tenant's object as it is now.
func read[T client.Object](t *local.Tenant, object T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		now := object.DeepCopyObject().(T)
		return now, get(ctx, t, now)
	}
}

// pod is one that runs a program of an image.
func pod(ns, name, image string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "main", Image: image, Args: args}},
		},
	}
}

// server is a pod that answers HTTP, and is ready when it does.
func server(ns, name string) *corev1.Pod {
	p := pod(ns, name, agnhost, "netexec", fmt.Sprint("--http-port=", port))
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt32(port)}},
		PeriodSeconds: 1,
	}
	return p
}

// job runs a pod until it succeeds.
func job(p *corev1.Pod) *batchv1.Job {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(20)), Template: template},
	}
}

// shouldReach runs a pod of a tenant that connects to an address.
func shouldReach(ctx context.Context, t *local.Tenant, ns, address string) {
	GinkgoHelper()
	caller := job(pod(ns, "caller", agnhost, "connect", "--timeout=10s", address))
	caller.Name, caller.GenerateName = "", "caller-"
	create(ctx, t, caller)
	Eventually(read(t, caller)).WithContext(ctx).WithTimeout(2 * soon).Should(HaveField("Status.Succeeded", BeEquivalentTo(1)))
}

// shouldBeReady waits until a pod is, and returns it.
func shouldBeReady(ctx context.Context, t *local.Tenant, p *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	var now *corev1.Pod
	Eventually(func(g Gomega, ctx context.Context) {
		var err error
		now, err = read(t, p)(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now.Status.Phase).To(Equal(corev1.PodRunning))
		g.Expect(now.Status.ContainerStatuses).To(HaveEach(HaveField("Ready", true)))
	}).WithContext(ctx).Should(Succeed())
	return now
}

// restarts is how often the only container of a pod was started again, as the
// tenant sees it.
func restarts(t *local.Tenant, p *corev1.Pod) func(context.Context) (int32, error) {
	return func(ctx context.Context) (int32, error) {
		now, err := read(t, p)(ctx)
		if err != nil || len(now.Status.ContainerStatuses) == 0 {
			return 0, err
		}
		return now.Status.ContainerStatuses[0].RestartCount, nil
	}
}

var beNotFound = MatchError(apierrors.IsNotFound, "not found")
