package integration

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// beginRemoval deletes a VirtualCluster. The deletion takes seconds, for which
// only specs about it wait.
func beginRemoval(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(super.Client.Delete(ctx, vc))).To(Succeed())
}

// nothingIsLeft waits until all tenants and their namespaces are gone.
func nothingIsLeft(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		vcs := &tenancyv1alpha1.VirtualClusterList{}
		g.Expect(super.Client.List(ctx, vcs)).To(Succeed())
		g.Expect(vcs.Items).To(BeEmpty())
		namespaces := &corev1.NamespaceList{}
		g.Expect(super.Client.List(ctx, namespaces, client.HasLabels{names.VCName})).To(Succeed())
		g.Expect(namespaces.Items).To(BeEmpty())
	}).WithContext(ctx).WithTimeout(recovery).Should(Succeed())
}

// removeTenant deletes a VirtualCluster and waits until it is gone.
func removeTenant(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) {
	GinkgoHelper()
	beginRemoval(ctx, vc)
	Eventually(kit.Get).WithContext(ctx).WithArguments(super.Client, vc).WithTimeout(2 * kit.Soon).
		Should(MatchError(apierrors.IsNotFound, "not found"))
}

// must returns a result. It fails the spec on an error, so it is not for
// polling.
func must[T any](found T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return found
}

func configMap(ns, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}
}

func secret(ns, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, StringData: data}
}

func service(ns, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app.kubernetes.io/name": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}

func withConfigMap(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].EnvFrom = append(p.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		})
	}
}

func withSecret(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}},
		})
	}
}

func deployment(ns, name string, replicas int32, change ...func(*corev1.Pod)) *appsv1.Deployment {
	template := kit.Pod(ns, name, change...)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
}

// pods lists the pods of a namespace.
func pods(ctx context.Context, c client.Client, ns string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := c.List(ctx, list, client.InNamespace(ns))
	return list.Items, err
}

// running returns the names of the running pods of a namespace.
func running(ctx context.Context, c client.Client, ns string) ([]string, error) {
	all, err := pods(ctx, c, ns)
	var names []string
	for _, p := range all {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	return names, err
}

// podNames returns the names of all pods of a namespace.
func podNames(ctx context.Context, c client.Client, ns string) ([]string, error) {
	all, err := pods(ctx, c, ns)
	names := []string{}
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names, err
}

// superNamespaces returns the tenant's namespaces in the super cluster,
// including the root.
func superNamespaces(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) ([]corev1.Namespace, error) {
	list := &corev1.NamespaceList{}
	labels := client.MatchingLabels{names.VCNamespace: vc.Namespace, names.VCName: vc.Name}
	err := super.Client.List(ctx, list, labels)
	return list.Items, err
}

// text returns an object as text.
func text(obj any) string {
	data, err := json.Marshal(obj)
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// settle waits until the syncer sends no more requests.
func settle(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		before, err := syncer.Requests()
		g.Expect(err).NotTo(HaveOccurred())
		g.Consistently(func() (local.Requests, error) {
			now, err := syncer.Requests()
			return now.Since(before), err
		}, kit.Quiet/2, kit.Poll).Should(BeEmpty())
	}).WithContext(ctx).WithTimeout(recovery).Should(Succeed()) // tenants of other specs may still be removed
}
