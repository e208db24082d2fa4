package chain_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// pod returns the pod x with one container.
func pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
	}
}

// createTeam creates a namespace in which pods can be created.
func createTeam(t *testing.T, client kubernetes.Interface, labels ...string) {
	t.Helper()
	createNamespace(t, client, "team", labels...)
	_, err := client.CoreV1().ServiceAccounts("team").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// redAndBlue returns clients of two tenants, each with the namespace team.
func redAndBlue(t *testing.T) (red, blue kubernetes.Interface) {
	t.Helper()
	c, _ := newChain(t)
	_, red = add(t, c, "red")
	_, blue = add(t, c, "blue")
	createTeam(t, red)
	createTeam(t, blue)
	return red, blue
}

// TestPodsOfServiceAccounts: a pod has the token of its service account, and the
// service account is that of its tenant.
func TestPodsOfServiceAccounts(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := add(t, c, "red")
	_, blue := add(t, c, "blue")
	createTeam(t, red)
	createNamespace(t, blue, "team")

	created, err := red.CoreV1().Pods("team").Create(t.Context(), pod(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(created.Spec.ServiceAccountName).To(Equal("default"))
	g.Expect(created.Spec.Volumes).To(HaveLen(1))
	g.Expect(created.Spec.Containers[0].VolumeMounts).To(HaveLen(1))
	g.Expect(*created.Spec.Tolerations[0].TolerationSeconds).To(BeEquivalentTo(300))
	g.Expect(*created.Spec.Priority).To(BeZero())
	_, err = blue.CoreV1().Pods("team").Create(t.Context(), pod(), metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("serviceaccount \"default\" not found")))
}

// TestNamespaces: nothing can be created in a namespace that only another
// tenant has.
func TestNamespaces(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := add(t, c, "red")
	_, blue := add(t, c, "blue")
	createNamespace(t, red, "own")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	_, err := red.CoreV1().Secrets("own").Create(t.Context(), secret, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = blue.CoreV1().Secrets("own").Create(t.Context(), secret, metav1.CreateOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	createNamespace(t, red, "default")
	g.Expect(red.CoreV1().Namespaces().Delete(t.Context(), "default", metav1.DeleteOptions{})).To(MatchError(ContainSubstring("this namespace may not be deleted")))
}

// TestPodSecurity: the labels of a namespace are those of its tenant.
func TestPodSecurity(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, red := add(t, c, "red")
	_, blue := add(t, c, "blue")
	createTeam(t, red, "pod-security.kubernetes.io/enforce", "baseline")
	createTeam(t, blue)
	privileged := pod()
	privileged.Spec.HostNetwork = true
	_, err := red.CoreV1().Pods("team").Create(t.Context(), privileged, metav1.CreateOptions{})
	g.Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "baseline:latest"`)))
	_, err = blue.CoreV1().Pods("team").Create(t.Context(), privileged, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// TestLimitRanges sets the defaults of one tenant.
func TestLimitRanges(t *testing.T) {
	g := NewWithT(t)
	red, blue := redAndBlue(t)
	_, err := red.CoreV1().LimitRanges("team").Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		created, err := red.CoreV1().Pods("team").Create(t.Context(), pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(created.Spec.Containers[0].Resources.Limits.Cpu().String()).To(Equal("2"))
	}, later).Should(Succeed())
	created, err := blue.CoreV1().Pods("team").Create(t.Context(), pod(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(created.Spec.Containers[0].Resources.Limits).To(BeEmpty())
}

// TestQuotas: a quota applies to its tenant.
func TestQuotas(t *testing.T) {
	g := NewWithT(t)
	red, blue := redAndBlue(t)
	one := corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse("1")}
	quotas := red.CoreV1().ResourceQuotas("team")
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.ResourceQuotaSpec{Hard: one},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	quota.Status = corev1.ResourceQuotaStatus{Hard: one, Used: corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse("0")}}
	_, err = quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	created := 0
	g.Eventually(func() error {
		err := createConfigMap(t, red, fmt.Sprint(created))
		if err == nil {
			created++
		}
		return err
	}, later).Should(MatchError(ContainSubstring("exceeded quota: x")))
	for i := range created + 1 {
		g.Expect(createConfigMap(t, blue, fmt.Sprint(i))).To(Succeed())
	}
	quota, err = quotas.Get(t.Context(), "x", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(quota.Status.Used).To(HaveKeyWithValue(corev1.ResourceConfigMaps, resource.MustParse("1")))
}

func createConfigMap(t *testing.T, client kubernetes.Interface, name string) error {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}
