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
