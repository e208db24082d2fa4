package integration

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// otherHost has the options of a vc-standalone that only hosts control planes.
var otherHost = []string{"--syncer=false", "--nodes=0"}

// startOtherHost starts another host of control planes.
func startOtherHost(ctx context.Context) *local.SuperCluster {
	GinkgoHelper()
	host, err := local.Start(ctx, kit.TempDir(), otherHost...)
	Expect(err).NotTo(HaveOccurred())
	return host
}

// tenantThrough creates a tenant with an external control plane, which the
// syncer reaches with a kubeconfig.
func tenantThrough(ctx context.Context, there *local.Tenant, kubeconfig []byte) *local.Tenant {
	GinkgoHelper()
	return kit.ExternalTenant(ctx, super, virtualCluster(), there, kubeconfig)
}

// externalTenant starts another host, and creates a tenant whose control plane is
// that of the host itself.
func externalTenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) *local.Tenant {
	GinkgoHelper()
	host := startOtherHost(ctx)
	DeferCleanup(func() { Expect(host.Stop()).To(Succeed()) })
	there := &local.Tenant{Client: host.Client, Config: host.Config, VC: virtualCluster()}
	return kit.ExternalTenant(ctx, super, virtualCluster(change...), there, must(os.ReadFile(filepath.Join(host.Dir, "super.kubeconfig"))))
}
