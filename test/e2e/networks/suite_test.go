// Package networks holds the tests of networks with containers: vc-standalone
// with a real node, and tenants whose pods are in networks that are kept apart.
package networks

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// soon is how long a container may take to start, on a machine that is busy.
	soon = 90 * time.Second
	poll = 100 * time.Millisecond
	// smoke labels the specs that are run for every change.
	smoke = "smoke"
)

var (
	super     *local.SuperCluster
	red, blue *local.Tenant
)

func TestNetworks(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Networks")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir, err := os.MkdirTemp("", "vc-e2e-")
	Expect(err).NotTo(HaveOccurred())
	super, err = local.Start(ctx, dir, "--nodes", "real", "--networks")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(super.Stop()).To(Succeed())
		Expect(os.RemoveAll(dir)).To(Succeed(), "and nothing is mounted in it")
	})
	red, blue = newTenant(ctx, "red"), newTenant(ctx, "blue")
})

// newTenant makes a tenant with networks that open nothing, everything, and a
// range outside.
func newTenant(ctx SpecContext, name string) *local.Tenant {
	GinkgoHelper()
	t, err := super.NewTenant(ctx, &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	Expect(err).NotTo(HaveOccurred())
	for network, egress := range map[string]*networkv1.Egress{
		closed: {Type: networkv1.EgressNone}, open: {Type: networkv1.EgressAll},
		ranged: {Type: networkv1.EgressCIDRs, CIDRs: []networkv1.CIDR{outsideRange}},
	} {
		n := &networkv1.Network{
			ObjectMeta: metav1.ObjectMeta{Name: network}, Spec: networkv1.NetworkSpec{Type: networkv1.TypeFlat, Egress: egress},
		}
		Eventually(t.Client.Create).WithContext(ctx).WithArguments(n).Should(Succeed())
	}
	return t
}
