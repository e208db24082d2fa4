package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// soon is how long a container may take to start or to end, on a machine
	// that is busy.
	soon = 90 * time.Second
	// poll is how often a test looks.
	poll = 100 * time.Millisecond
	// smoke labels the specs that are run for every change.
	smoke = "smoke"
)

var (
	super *local.SuperCluster
	// red and blue are the tenants of all specs that do not need one of their
	// own. They share a DNS; green has a CoreDNS of its own.
	red, blue, green *local.Tenant
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(poll)
	SetDefaultConsistentlyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir, err := os.MkdirTemp("", "vc-e2e-")
	Expect(err).NotTo(HaveOccurred())
	super, err = local.Start(ctx, dir, "--nodes", "real", "--converted-tenants")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(super.Stop()).To(Succeed())
		Expect(os.RemoveAll(dir)).To(Succeed(), "and nothing is mounted in it")
	})
	red, blue, green = newTenant(ctx, "red"), newTenant(ctx, "blue"), newTenant(ctx, "green")
	chooseDNS(ctx, green, names.Dedicated)
})

func newTenant(ctx SpecContext, name string) *local.Tenant {
	GinkgoHelper()
	return newTenantBy(ctx, name, "")
}

// newTenantBy makes a tenant with a provisioner; empty for the default.
func newTenantBy(ctx SpecContext, name string, provisioner tenancyv1alpha1.ProvisionerType) *local.Tenant {
	GinkgoHelper()
	t, err := super.NewTenant(ctx, &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       tenancyv1alpha1.VirtualClusterSpec{Provisioner: provisioner},
	})
	Expect(err).NotTo(HaveOccurred())
	return t
}
