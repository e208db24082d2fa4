// Package integration holds the tests of the whole path: real apiservers for the super cluster and every tenant, in a
// vc-standalone of their own, and the syncer in this process.
package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// soon is how long anything may take that the syncer does in milliseconds, on a machine that is busy.
	soon = 20 * time.Second
	// poll is how often a test looks.
	poll = 20 * time.Millisecond
	// quiet is how long nothing may happen where nothing should.
	quiet = 1500 * time.Millisecond
)

// longer is an environment variable: with any value, specs that take as many objects, or as long, as it takes to be sure do so.
// Otherwise they are short, so that the suite can run for every change.
const longer = "AT_LENGTH"

// atLength is one of two values, by the environment.
func atLength[T any](long, short T) T {
	if os.Getenv(longer) != "" {
		return long
	}
	return short
}

var (
	super *local.SuperCluster
	// account is the configuration of the syncer's service account, so that all specs prove its roles.
	account *rest.Config
	logger  logr.Logger
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(poll)
	SetDefaultConsistentlyDuration(quiet)
	SetDefaultConsistentlyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Integration")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(GinkgoWriter)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	dir, err := os.MkdirTemp("", "vc-integration-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	super, err = local.Start(ctx, dir, "--syncer=false", "--agent=false", "--nodes", "3")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
	account, err = super.SyncerConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	current = func() *local.Syncer { return local.StartSyncer(account, logger) }
	syncer = current()
	DeferCleanup(func() { Expect(syncer.Stop()).To(Succeed()) })
	DeferCleanup(func(ctx SpecContext) { nothingIsLeft(ctx) })
})

// tenant makes a tenant for a spec or a container of specs; its deletion begins at the end.
func tenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) *local.Tenant {
	GinkgoHelper()
	vc := virtualCluster(change...)
	DeferCleanup(func(ctx SpecContext) { beginRemoval(ctx, vc) })
	t, err := super.NewTenant(ctx, vc)
	Expect(err).NotTo(HaveOccurred())
	return t
}

// virtualCluster returns a VirtualCluster of a name that no other has, whose policy is that of a tenant with the super cluster to
// itself, as most specs are about.
func virtualCluster(change ...func(*tenancyv1alpha1.VirtualCluster)) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("t%d", time.Now().UnixNano()%1e9)},
		Spec: tenancyv1alpha1.VirtualClusterSpec{
			Policy: &tenancyv1alpha1.TenantPolicy{
				AllowTolerations: []string{bareLabel, "example.com/new"}, AllowExternalNames: true, IngressHosts: []string{"*"},
				AllowReclaimPolicies: []tenancyv1alpha1.ReclaimPolicy{"Retain", "Delete"},
				// What specs write by hand leads nowhere in particular.
				EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24", "10.1.2.0/24", "fd00::/8"},
			},
		},
	}
	for _, f := range change {
		f(vc)
	}
	return vc
}
