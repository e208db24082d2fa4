// Package escapes holds the attacks of a hostile tenant: each spec is one
// attempt to reach beyond the tenant, or to keep others from their share, on
// real apiservers. A tenant is cluster-admin of its control plane; that of an
// External tenant may answer anything.
package escapes

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// patrol is short, so that an attack also meets the patrol.
const patrol = 5 * time.Second

// tenantMemory is little, so that an attack exceeds it soon.
var tenantMemory = resource.MustParse("16Mi")

var (
	super *local.SuperCluster
	// account is the syncer's service account: the attacks meet the roles that
	// are shipped.
	account *rest.Config
	syncer  *local.Syncer
	logger  logr.Logger
)

func TestEscapes(t *testing.T) { kit.Run(t, "Escapes") }

var _ = BeforeSuite(func(ctx SpecContext) {
	logger = kit.NewLogger()
	super, account = kit.StartSuper(ctx, "--tenant-egress-cidr", outsideNetwork,
		// The store limits what a tenant hoards, so that the attacks on the
		// syncer need more room.
		"--tenant-storage=256Mi", "--tenant-writes=64Mi")
	syncer = local.StartSyncer(account, logger, func(o *app.Options) {
		o.Patrol, o.TenantMemory, o.QuotaValidation = patrol, tenantMemory, true
	})
	DeferCleanup(func() { Expect(syncer.Stop()).To(Succeed()) })
})

// tenant creates a tenant for a spec or a container of specs and deletes it at
// the end, without waiting for that.
func tenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) *local.Tenant {
	GinkgoHelper()
	return kit.Tenant(ctx, super, kit.VirtualCluster(change...))
}
