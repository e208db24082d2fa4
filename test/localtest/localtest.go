// Package localtest runs super clusters and programs for the tests of plugins.
package localtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// Start starts a super cluster until the end of the test, with arguments of
// vc-standalone. Without that program, the test is skipped.
func Start(t *testing.T, args ...string) *local.SuperCluster {
	t.Helper()
	if os.Getenv(local.Binary) == "" {
		t.Skipf("set %s; make test-plugins does", local.Binary)
	}
	cluster, err := local.Start(t.Context(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// Run runs a program with the permissions of a configuration, without a health
// probe, until the end of the test.
func Run(t *testing.T, command *cobra.Command, config *rest.Config, args ...string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := local.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	command.SetArgs(append([]string{"--kubeconfig", kubeconfig, "--health-probe-bind-address=0"}, args...))
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
