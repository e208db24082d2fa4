package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/local"
	agentapp "github.com/virtualcluster/virtualcluster/vnagent/app"
)

// All specs share one syncer, with the rights that are shipped. Two at a time would hide what one does wrong, so these are the only
// ways to put another in its place.
var (
	syncer *local.Syncer
	// current starts the syncer that is the one for now.
	current func() *local.Syncer
)

// restartSyncer stops the syncer and starts it again.
func restartSyncer() {
	GinkgoHelper()
	whileStopped(func() {})
}

// whileStopped does something while the syncer is away, which is there again in any case.
func whileStopped(f func()) {
	GinkgoHelper()
	defer func() { syncer = current() }()
	Expect(syncer.Stop()).To(Succeed())
	f()
}

// useSyncer puts another syncer in the place of the one there is, until the spec or the container of specs ends.
func useSyncer(config *rest.Config, change ...func(*app.Options)) {
	GinkgoHelper()
	was := current
	use := func(start func() *local.Syncer) {
		whileStopped(func() { current = start })
	}
	use(func() *local.Syncer { return local.StartSyncer(config, logger, change...) })
	DeferCleanup(func() { use(was) })
}

// useAgent starts an agent with the rights that are shipped, and a syncer that
// sends tenants to it, until the container of specs ends.
func useAgent(ctx context.Context, change ...func(*agentapp.Options)) *local.Agent {
	GinkgoHelper()
	config, err := super.AgentConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	agent, err := super.StartAgent(config, logger, change...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(agent.Stop()).To(Succeed()) })
	useSyncer(account, func(o *app.Options) { o.AgentAddress = agent.Address })
	return agent
}

// takeSyncerAway stops the syncer until the container of specs ends, for what does its work meanwhile.
func takeSyncerAway() {
	GinkgoHelper()
	Expect(syncer.Stop()).To(Succeed())
	DeferCleanup(func() { syncer = current() })
}
