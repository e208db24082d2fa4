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

// All specs share one syncer, with the shipped roles. Two at a time would hide
// each other's faults, so these functions are the only ways to replace it.
var (
	syncer *local.Syncer
	// current starts the syncer of the current specs.
	current func() *local.Syncer
)

// restartSyncer stops the syncer and starts it again.
func restartSyncer() {
	GinkgoHelper()
	whileStopped(func() {})
}

// whileStopped runs f while the syncer is stopped, and starts it again in any
// case.
func whileStopped(f func()) {
	GinkgoHelper()
	defer func() { syncer = current() }()
	Expect(syncer.Stop()).To(Succeed())
	f()
}

// useSyncer replaces the syncer until the spec or the container of specs ends.
func useSyncer(config *rest.Config, change ...func(*app.Options)) {
	GinkgoHelper()
	was := current
	use := func(start func() *local.Syncer) {
		whileStopped(func() { current = start })
	}
	use(func() *local.Syncer { return local.StartSyncer(config, logger, change...) })
	DeferCleanup(func() { use(was) })
}

// useAgent starts an agent with the shipped roles, and a syncer that configures
// it in virtual nodes, until the container of specs ends.
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

// takeSyncerAway stops the syncer until the container of specs ends, for a
// replacement that the specs start.
func takeSyncerAway() {
	GinkgoHelper()
	Expect(syncer.Stop()).To(Succeed())
	DeferCleanup(func() { syncer = current() })
}
