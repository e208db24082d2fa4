package hosted_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

func TestTheSuperClusterWorks(t *testing.T) {
	t.Parallel()
	plane := runReady(t, shared, hosted.Spec{Name: "work", Stock: true})
	client := clientOf(t, plane.RESTConfig())
	t.Run("a deployment becomes pods", func(t *testing.T) { deploymentBecomesPods(t, client) })
	t.Run("a namespace goes away", func(t *testing.T) { namespaceGoesAway(t, client) })
	t.Run("a service account's token works", func(t *testing.T) { tokenWorks(t, client, plane) })
	t.Run("a claim is bound", func(t *testing.T) { claimIsBound(t, client) })
	t.Run("a quota counts", func(t *testing.T) { quotaCounts(t, client) })
	t.Run("a certificate is signed", func(t *testing.T) { certificateIsSigned(t, client, plane) })
	t.Run("a certificate is for clients", func(t *testing.T) { certificateIsForClients(t, client) })
	t.Run("custom resources are collected", func(t *testing.T) { customResourcesAreCollected(t, client, plane) })
}

func podTemplate(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause"}}},
	}
}

func deploymentBecomesPods(t *testing.T, client kubernetes.Interface) {
	t.Parallel()
	g := NewWithT(t)
	labels := map[string]string{"app": "web"}
	replicas := int32(3)
	_, err := client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(labels),
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Items).To(HaveLen(3))
		g.Expect(pods.Items).To(HaveEach(HaveField("Status.Phase", corev1.PodPending)))
	}).WithTimeout(soon).WithPolling(tick).Should(Succeed())
}

func namespaceGoesAway(t *testing.T, client kubernetes.Interface) {
	t.Parallel()
	g := NewWithT(t)
	namespaces := client.CoreV1().Namespaces()
	_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "brief"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		_, err := client.CoreV1().ServiceAccounts("brief").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	}).WithTimeout(soon).WithPolling(tick).Should(Succeed())
	g.Expect(namespaces.Delete(t.Context(), "brief", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error {
		_, err := namespaces.Get(t.Context(), "brief", metav1.GetOptions{})
		return err
	}).WithTimeout(soon).WithPolling(tick).Should(Satisfy(apierrors.IsNotFound))
}

func tokenWorks(t *testing.T, client kubernetes.Interface, plane *hosted.ControlPlane) {
	t.Parallel()
	g := NewWithT(t)
	token, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	config := rest.AnonymousClientConfig(plane.RESTConfig())
	config.BearerToken = token.Status.Token
	bearer := clientOf(t, config)
	who, err := bearer.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(who.Status.UserInfo.Username).To(Equal("system:serviceaccount:default:default"))
	_, err = bearer.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(Satisfy(apierrors.IsForbidden), "RBAC holds")
}

func claimIsBound(t *testing.T, client kubernetes.Interface) {
	t.Parallel()
	g := NewWithT(t)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes, StorageClassName: "manual",
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "1"},
			}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	class := "manual"
	_, err = client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		claim, err := client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "data", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		g.Expect(claim.Spec.VolumeName).To(Equal("disk"))
	}).WithTimeout(soon).WithPolling(tick).Should(Succeed())
}

func quotaCounts(t *testing.T, client kubernetes.Interface) {
	t.Parallel()
	g := NewWithT(t)
	_, err := client.CoreV1().ResourceQuotas("default").Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "services"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("9")}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		quota, err := client.CoreV1().ResourceQuotas("default").Get(t.Context(), "services", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		used := quota.Status.Used[corev1.ResourceServices]
		g.Expect(used.Value()).To(BeEquivalentTo(1), "the kubernetes service")
	}).WithTimeout(soon).WithPolling(tick).Should(Succeed())
}

func TestTheSuperClusterSchedules(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	plane := runReady(t, shared, hosted.Spec{Name: "sched", Stock: true, Controllers: hosted.SuperControllers(), NodeAuthorization: true})
	core := clientOf(t, plane.RESTConfig()).CoreV1()
	node, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	node.Spec.Taints = nil // admission has marked it as not ready
	node, err = core.Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	_, err = core.Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	template := podTemplate(nil)
	_, err = core.Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: template.Spec,
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() (string, error) {
		pod, err := core.Pods("default").Get(t.Context(), "pod", metav1.GetOptions{})
		return pod.Spec.NodeName, err
	}).WithTimeout(soon).WithPolling(tick).Should(Equal("node"))
}
