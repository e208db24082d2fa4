package chain_test

import (
	"fmt"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/memtest"
)

// TestAdmissionIsCheap: a tenant that writes, but configures no admission, has
// no goroutine.
func TestAdmissionIsCheap(t *testing.T) {
	const tenants = 20
	g := NewWithT(t)
	c, _ := newChain(t)
	use := func(name string) {
		_, client := add(t, c, name)
		createTeam(t, client)
		_, err := client.CoreV1().Pods("team").Create(t.Context(), pod(), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	use("first")
	goroutines, bytes := runtime.NumGoroutine(), memtest.Heap()
	for i := range tenants {
		use(fmt.Sprint("tenant-", i))
	}
	g.Eventually(runtime.NumGoroutine, later).Should(BeNumerically("<=", goroutines+tenants/4))
	each := (memtest.Heap() - bytes) / tenants
	t.Logf("%d KB of heap for each tenant", each>>10)
	g.Expect(each).To(BeNumerically("<", 1<<20))
	runtime.KeepAlive(c)
}
