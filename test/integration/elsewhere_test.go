package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
