package integration

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// longer is an environment variable: if it is set, specs use as many objects,
// or as much time, as it takes to be sure. Otherwise they are short, so that
// the suite can run for every change.
const longer = "AT_LENGTH"

// atLength returns one of two values, depending on the environment.
func atLength[T any](long, short T) T {
	if os.Getenv(longer) != "" {
		return long
	}
	return short
}

var (
	super *local.SuperCluster
	// account is the configuration of the syncer's service account, so that all
	// specs test its roles.
	account *rest.Config
	logger  logr.Logger
)

func TestIntegration(t *testing.T) { kit.Run(t, "Integration") }

var _ = BeforeSuite(func(ctx SpecContext) {
	logger = kit.NewLogger()
	super, account = kit.StartSuper(ctx, "--converted-tenants")
	current = func() *local.Syncer { return local.StartSyncer(account, logger) }
	syncer = current()
	DeferCleanup(func() { Expect(syncer.Stop()).To(Succeed()) })
	DeferCleanup(func(ctx SpecContext) { nothingIsLeft(ctx) })
})

// tenant creates a tenant for a spec or a container of specs. The cleanup
// deletes it without waiting.
func tenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) *local.Tenant {
	GinkgoHelper()
	return kit.Tenant(ctx, super, virtualCluster(change...))
}

// virtualCluster returns a VirtualCluster with a unique name and with the
// policy of a tenant that has the super cluster to itself.
func virtualCluster(change ...func(*tenancyv1alpha1.VirtualCluster)) *tenancyv1alpha1.VirtualCluster {
	open := func(vc *tenancyv1alpha1.VirtualCluster) {
		vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{
			AllowTolerations: []string{bareLabel, "example.com/new"}, AllowExternalNames: true, IngressHosts: []string{"*"},
			AllowReclaimPolicies: []tenancyv1alpha1.ReclaimPolicy{"Retain", "Delete"},
			// Networks of the addresses in Endpoints that specs create.
			EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24", "10.1.2.0/24", "fd00::/8"},
		}
	}
	return kit.VirtualCluster(append([]func(*tenancyv1alpha1.VirtualCluster){open}, change...)...)
}
