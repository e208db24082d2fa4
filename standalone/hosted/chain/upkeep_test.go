package chain_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUpkeep: the objects of every cluster are created again after a tenant has
// deleted them, and after all data of a tenant was lost.
func TestUpkeep(t *testing.T) {
	c, all := newChain(t)
	tenant, client := add(t, c, "red")
	_, other := add(t, c, "blue")
	g := NewWithT(t)
	g.Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
	t.Run("the Service of the apiserver", func(t *testing.T) {
		g := NewWithT(t)
		services := client.CoreV1().Services(metav1.NamespaceDefault)
		g.Expect(services.Delete(t.Context(), "kubernetes", metav1.DeleteOptions{})).To(Succeed())
		g.Eventually(func() (string, error) {
			found, err := services.Get(t.Context(), "kubernetes", metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return found.Spec.ClusterIP, nil
		}, later).Should(Equal("10.96.0.1"))
	})
	t.Run("everything", func(t *testing.T) {
		g := NewWithT(t)
		before := uidOf(t, client, metav1.NamespaceSystem)
		_, err := all.Delete(t.Context(), "/controlplanes/red/", clientv3.WithPrefix())
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(func(g Gomega) {
			found, err := client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.UID).NotTo(Equal(before), "it is another cluster")
			_, err = client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = client.CoreV1().Services(metav1.NamespaceDefault).Get(t.Context(), "kubernetes", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		}, later).Should(Succeed())
	})
	namespaces, err := other.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namespaces.Items).To(BeEmpty(), "a tenant without a bootstrap has none")
}
