package provisioner_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// TestLimitsChangeWhileItRuns: without a restart. A limit below what is stored
// deletes nothing.
func TestLimitsChangeWhileItRuns(t *testing.T) {
	g := NewWithT(t)
	host, ways := start(t, t.TempDir())
	t.Parallel()
	vc := virtualCluster("red")
	vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Limits: &tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(5000))}}
	state := untilReady(t, ways, vc)
	running, _ := host.Get(vc.Status.ClusterNamespace)
	g.Expect(state.Limits.Reached).To(BeEmpty())
	config, err := clientcmd.RESTConfigFromKubeConfig(state.Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	configMaps := client.CoreV1().ConfigMaps("default")
	create := func(name string) error {
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"x": strings.Repeat("x", 1000)},
		}, metav1.CreateOptions{})
		return err
	}
	g.Expect(create("first")).To(Succeed())
	before := host.Usage(vc.Status.ClusterNamespace).Objects

	vc.Spec.ControlPlane.Limits.Objects = new(int64(10))
	_, err = ways.Ensure(t.Context(), vc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(create("second")).To(Satisfy(apierrors.IsForbidden))
	hear(t, ways, vc)
	state, err = ways.Ensure(t.Context(), vc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Ready).To(BeTrue())
	g.Expect(state.Limits.Reached).To(Equal(tenancyv1alpha1.ReasonStorageLimitReached))
	g.Expect(state.Limits.Message).To(ContainSubstring("of 10 objects"))
	g.Expect(host.Usage(vc.Status.ClusterNamespace).Objects).To(BeNumerically(">=", before))
	shrunk := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
	_, err = configMaps.Update(t.Context(), shrunk, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "an update that shrinks")
	g.Expect(configMaps.Delete(t.Context(), "first", metav1.DeleteOptions{})).To(Succeed())

	vc.Spec.ControlPlane.Limits = nil // the host's are none
	_, err = ways.Ensure(t.Context(), vc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(create("third")).To(Succeed())
	now, _ := host.Get(vc.Status.ClusterNamespace)
	g.Expect(now).To(BeIdenticalTo(running), "it was not restarted")
}

// TestASecondServiceRangeIsAdded: to a control plane that runs, which restarts.
func TestASecondServiceRangeIsAdded(t *testing.T) {
	g := NewWithT(t)
	host, ways := start(t, t.TempDir())
	t.Parallel()
	vc := virtualCluster("red")
	vc.Status.ServiceCIDR = "10.104.16.0/20"
	untilReady(t, ways, vc)
	before, _ := host.Get(vc.Status.ClusterNamespace)

	vc.Status.SecondaryServiceCIDR = "fd00:104::1:0/116"
	_, err := ways.Ensure(t.Context(), vc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(before.Done(), later).Should(BeClosed())
	state := untilReady(t, ways, vc)
	config, err := clientcmd.RESTConfigFromKubeConfig(state.Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	all, err := client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all.Spec.CIDRs).To(Equal([]string{"10.104.16.0/20", "fd00:104::1:0/116"}))
	created, err := client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "both"},
		Spec:       corev1.ServiceSpec{IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack), Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(created.Spec.ClusterIPs).To(HaveExactElements(HavePrefix("10.104."), HavePrefix("fd00:104::")))
}
