package chain_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestTrim: an idle tenant has no roles in memory, and the next request lists
// them.
func TestTrim(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	tenant, _ := add(t, c, "red")
	g.Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
	config := tenant.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "user", Groups: []string{"system:authenticated"}}
	user, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	roles := tenant.Views().NewFactory().Rbac().V1().ClusterRoles().Informer()
	for range 2 {
		_, err = user.Discovery().ServerVersion()
		g.Expect(err).NotTo(HaveOccurred(), "a role allows it")
		_, err = user.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		g.Expect(err).To(HaveOccurred())
		g.Expect(roles.LastSyncResourceVersion()).NotTo(BeEmpty())
		c.Trim()
		c.Trim()
		g.Expect(roles.LastSyncResourceVersion()).To(BeEmpty())
	}
}
