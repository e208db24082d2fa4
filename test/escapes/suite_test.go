// Package escapes holds the attacks of a hostile tenant: each spec is one attempt to reach beyond the tenant, or to keep others from
// their share, on real apiservers. A tenant is cluster-admin of its control plane; that of an External tenant may answer anything.
package escapes

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// soon bounds how long the syncer may take to act on a busy machine.
	soon = 20 * time.Second
	// poll is the interval at which a spec looks again.
	poll = 20 * time.Millisecond
	// quiet is how long an effect must stay absent before an attack counts as refused.
	quiet = 1500 * time.Millisecond
	// patrol is short, so that an attack also meets the patrol.
	patrol = 5 * time.Second
)

// tenantMemory is little, so that an attack exceeds it soon.
var tenantMemory = resource.MustParse("16Mi")

var (
	super *local.SuperCluster
	// account is the syncer's service account: the attacks meet the roles that are shipped.
	account *rest.Config
	syncer  *local.Syncer
	logger  logr.Logger
)

func TestEscapes(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(poll)
	SetDefaultConsistentlyDuration(quiet)
	SetDefaultConsistentlyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Escapes")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(GinkgoWriter)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	dir, err := os.MkdirTemp("", "vc-escapes-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	super, err = local.Start(ctx, dir, "--syncer=false", "--agent=false", "--nodes", "3",
		"--tenant-egress-cidr", outsideNetwork,
		// The store limits what a tenant hoards, so that the attacks on the syncer need more room.
		"--tenant-storage=256Mi", "--tenant-writes=64Mi")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
	account, err = super.SyncerConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	syncer = local.StartSyncer(account, logger, func(o *app.Options) {
		o.Patrol, o.TenantMemory, o.QuotaValidation = patrol, tenantMemory, true
	})
	DeferCleanup(func() { Expect(syncer.Stop()).To(Succeed()) })
})

// tenant creates a tenant for a spec or a container of specs and deletes it at the end, without waiting for that.
func tenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) *local.Tenant {
	GinkgoHelper()
	vc := virtualCluster(change...)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, vc))).To(Succeed()) })
	t, err := super.NewTenant(ctx, vc)
	Expect(err).NotTo(HaveOccurred())
	return t
}

// virtualCluster returns a VirtualCluster with a name of its own.
func virtualCluster(change ...func(*tenancyv1alpha1.VirtualCluster)) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprintf("t%d", time.Now().UnixNano()%1e9),
	}}
	for _, f := range change {
		f(vc)
	}
	return vc
}
