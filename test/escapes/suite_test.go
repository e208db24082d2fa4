package escapes

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
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
	super, account = kit.StartSuper(ctx, "--converted-tenants", "--tenant-egress-cidr", outsideNetwork,
		// The store limits what a tenant hoards, so that the attacks on the
		// syncer need more room.
		"--tenant-storage=256Mi", "--tenant-writes=64Mi")
	startSyncer()
	DeferCleanup(func() { Expect(syncer.Stop()).To(Succeed()) })
})

// startSyncer starts the syncer that the attacks meet.
func startSyncer(change ...func(*app.Options)) {
	syncer = local.StartSyncer(account, logger, append([]func(*app.Options){func(o *app.Options) {
		o.Patrol, o.TenantMemory, o.QuotaValidation = patrol, tenantMemory, true
	}}, change...)...)
}

// startConvertedWebhook has the syncer serve the webhook of converted tenants until
// the end of a container of specs. It returns what restarts the syncer.
func startConvertedWebhook(ctx context.Context) (restart func()) {
	GinkgoHelper()
	hook := kit.ConvertedWebhook(ctx, super)
	restart = func() {
		Expect(syncer.Stop()).To(Succeed())
		startSyncer(hook)
	}
	restart()
	DeferCleanup(func() {
		Expect(syncer.Stop()).To(Succeed())
		startSyncer()
	})
	return restart
}

// stolenFrom returns the access to the super cluster of a converted tenant's service
// account, whose token only the gateway should have.
func stolenFrom(ctx context.Context, t *local.Tenant) *rest.Config {
	GinkgoHelper()
	access := &corev1.Secret{}
	Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: t.Key(), Name: names.GatewaySecret}, access)).To(Succeed())
	config := rest.AnonymousClientConfig(super.Config)
	config.BearerToken = string(access.Data["token"])
	return config
}

// tenant creates a tenant for a spec or a container of specs and deletes it at
// the end, without waiting for that.
func tenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) *local.Tenant {
	GinkgoHelper()
	return kit.Tenant(ctx, super, kit.VirtualCluster(change...))
}
