package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// otherHost are the options of a vc-standalone that does nothing but host control planes.
var otherHost = []string{"--syncer=false", "--nodes=0"}

// startOtherHost starts one.
func startOtherHost(ctx context.Context) *local.SuperCluster {
	GinkgoHelper()
	host, err := local.Start(ctx, kit.TempDir(), otherHost...)
	Expect(err).NotTo(HaveOccurred())
	return host
}

// tenantThrough creates a tenant of a control plane elsewhere, which the syncer reaches by a kubeconfig.
func tenantThrough(ctx context.Context, there *local.Tenant, kubeconfig []byte) *local.Tenant {
	GinkgoHelper()
	return kit.ExternalTenant(ctx, super, virtualCluster(), there, kubeconfig)
}
