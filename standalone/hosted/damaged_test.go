package hosted_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/server/v3/lease"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// damaged are keys of objects that cannot be decoded, below those of a tenant.
func damaged() []string {
	return []string{
		"/configmaps/default/damaged",
		"/secrets/default/damaged-token",
		"/deployments/default/damaged",
		"/apiextensions.k8s.io/customresourcedefinitions/damaged.example.com",
	}
}

// TestDamagedObjects: what concerns an object that cannot be decoded fails, with
// an error that names it. All else of the tenant works, and other tenants, also
// after a restart of the host.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	opts := options(t.TempDir())
	host, err := hosted.Start(t.Context(), opts)
	g.Expect(err).NotTo(HaveOccurred())
	specs := []hosted.Spec{{Name: "shared-bad", Shared: true}, {Name: "own-bad"}, {Name: "shared-good", Shared: true}, {Name: "own-good"}}
	planes := runAll(t, host, specs)
	kv := hosted.TenantsKV(host)
	for _, spec := range specs[:2] {
		for _, key := range damaged() {
			kv.Put([]byte(keyspace.Prefix(spec.Name)+key), []byte("damaged"), lease.NoLease)
		}
	}
	for round := range 2 {
		for i, plane := range planes {
			client := clientOf(t, plane.RESTConfig())
			shouldDeploy(t, client, round)
			if i >= 2 {
				g.Expect(errorOf(customResourcesOf(plane).List(t.Context(), metav1.ListOptions{}))).To(Satisfy(apierrors.IsNotFound))
				g.Expect(plane.FailingControllers()).To(BeEmpty())
				continue
			}
			shouldReportDamage(t, plane, client)
			g.Eventually(plane.FailingControllers).WithTimeout(soon).WithPolling(tick).Should(
				And(HaveKeyWithValue("Deployment default/damaged", MatchError("the stored object is damaged")),
					HaveKey("Secret default/damaged-token")))
		}
		if round > 0 {
			break
		}
		kv.Put([]byte(keyspace.Prefix(specs[0].Name)+"/secrets/default/damaged-token"), []byte("damaged, too"), lease.NoLease)
		g.Eventually(planes[0].FailingControllers).WithTimeout(soon).WithPolling(tick).Should(HaveKey("Secret default/damaged-token"), "again")
		g.Expect(host.Stop(context.Background())).To(Succeed())
		host, err = hosted.Start(t.Context(), opts)
		g.Expect(err).NotTo(HaveOccurred())
		planes = runAll(t, host, specs)
	}
	// Deleted objects are not reported any more.
	kv = hosted.TenantsKV(host)
	for _, key := range damaged() {
		kv.DeleteRange([]byte(keyspace.Prefix(specs[0].Name)+key), nil)
	}
	g.Eventually(planes[0].FailingControllers).WithTimeout(soon).WithPolling(tick).Should(BeEmpty())
	g.Expect(host.Stop(context.Background())).To(Succeed())
}

// TestDamagedNamespace: a control plane that lacks what every cluster has fails
// alone, and starts once it can be read again.
func TestDamagedNamespace(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	stop(t, runReady(t, shared, hosted.Spec{Name: "no-system", Shared: true}))
	kv, key := hosted.TenantsKV(shared), []byte(keyspace.Prefix("no-system")+"/namespaces/kube-system")
	kv.Put(key, []byte("damaged"), lease.NoLease)
	plane, err := shared.Run(hosted.Spec{Name: "no-system", Shared: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(plane.Done()).WithTimeout(later).Should(BeClosed())
	g.Expect(plane.Err()).To(MatchError(ContainSubstring("ensure namespace kube-system: decode a stored object of namespaces")))
	shouldDeploy(t, clientOf(t, runReady(t, shared, hosted.Spec{Name: "with-system", Shared: true}).RESTConfig()), 0)
	kv.DeleteRange(key, nil)
	runReady(t, shared, hosted.Spec{Name: "no-system", Shared: true})
}

func runAll(t *testing.T, host *hosted.Host, specs []hosted.Spec) []*hosted.ControlPlane {
	t.Helper()
	planes := make([]*hosted.ControlPlane, 0, len(specs))
	for _, spec := range specs {
		plane, err := host.Run(spec)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		planes = append(planes, plane)
	}
	for _, plane := range planes {
		awaitReady(t, plane)
	}
	return planes
}

// errorOf returns the error of a request, of which the object does not matter.
func errorOf(_ any, err error) error { return err }

func customResourcesOf(plane *hosted.ControlPlane) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(plane.RESTConfig()).Resource(widgets).Namespace("default")
}

// shouldReportDamage tests the requests that concern damaged objects.
func shouldReportDamage(t *testing.T, plane *hosted.ControlPlane, client kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	const damage = "decode a stored object of "
	list := metav1.ListOptions{}
	core := client.CoreV1()
	g.Expect(errorOf(core.ConfigMaps("default").List(t.Context(), list))).To(MatchError(HavePrefix(damage + "configmaps:")))
	g.Expect(errorOf(core.ConfigMaps("default").Get(t.Context(), "damaged", metav1.GetOptions{}))).To(MatchError(HavePrefix(damage + "configmaps:")))
	g.Expect(errorOf(core.Secrets("").List(t.Context(), list))).To(MatchError(HavePrefix(damage + "secrets:")))
	g.Expect(errorOf(client.AppsV1().Deployments("").List(t.Context(), list))).To(MatchError(HavePrefix(damage + "deployments.apps:")))
	g.Expect(errorOf(customResourcesOf(plane).List(t.Context(), list))).To(Satisfy(apierrors.IsServiceUnavailable))
	g.Expect(errorOf(core.ConfigMaps("kube-system").List(t.Context(), list))).NotTo(HaveOccurred())
	g.Expect(errorOf(core.ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{}))).NotTo(HaveOccurred())
}

// shouldDeploy creates a Deployment, which becomes a pod.
func shouldDeploy(t *testing.T, client kubernetes.Interface, round int) {
	t.Helper()
	g := NewWithT(t)
	name := []string{"first", "second"}[round]
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	labels := map[string]string{"app": name}
	_, err = client.AppsV1().Deployments(name).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
			},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (int, error) {
		pods, err := client.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{})
		return len(pods.Items), err
	}).WithTimeout(later).WithPolling(tick).Should(Equal(1))
}
