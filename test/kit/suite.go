// Package kit holds what the suites of specs on a local super cluster share:
// how a suite starts, and assertions about objects of the super cluster and of
// tenants.
package kit

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// Soon bounds how long the syncer may take to act on a busy machine.
	Soon = 45 * time.Second
	// Longest bounds a spec or a setup, of which none takes half as long on a busy
	// machine. Those with the label long may take longer.
	Longest = 8 * Soon
	// Poll is the interval at which a spec polls.
	Poll = 100 * time.Millisecond
	// Quiet is how long an effect must stay absent before it counts as absent.
	Quiet = 1500 * time.Millisecond
)

// Run runs the specs of a package, with the timeouts above.
func Run(t *testing.T, suite string) {
	t.Helper()
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(Soon)
	SetDefaultEventuallyPollingInterval(Poll)
	SetDefaultConsistentlyDuration(Quiet)
	SetDefaultConsistentlyPollingInterval(Poll)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, suite)
}

// NewLogger returns a logger that writes to the report of the running spec. The
// logs of libraries go there too.
func NewLogger() logr.Logger {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(GinkgoWriter)))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return logger
}

// StartSuper starts a super cluster with three nodes and without a syncer or an
// agent, and stops it at the end of the suite. It returns the configuration of
// the syncer's service account as well, so that all specs prove the roles that
// are shipped.
func StartSuper(ctx context.Context, args ...string) (*local.SuperCluster, *rest.Config) {
	GinkgoHelper()
	args = append([]string{"--syncer=false", "--agent=false", "--nodes=3"}, args...)
	super, err := local.Start(ctx, TempDir(), args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(super.Stop()).To(Succeed()) })
	account, err := super.SyncerConfig(ctx)
	Expect(err).NotTo(HaveOccurred())
	return super, account
}

// TempDir creates a directory and removes it at the end of the spec, the
// container of specs or the suite.
func TempDir() string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "vc-specs-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	return dir
}
