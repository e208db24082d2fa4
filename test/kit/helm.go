package kit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// HelmBinary is the environment variable with the path of Helm.
const HelmBinary = "VC_HELM"

// Helm runs Helm on a super cluster, for releases in one namespace.
type Helm struct{ dir, namespace string }

// NewHelm returns the Helm of a super cluster.
func NewHelm(super *local.SuperCluster, namespace string) Helm {
	return Helm{dir: super.Dir, namespace: namespace}
}

// Run runs a command of Helm, and returns what it prints.
func (h Helm) Run(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, os.Getenv(HelmBinary), append(args, "--namespace", h.namespace)...)
	home := filepath.Join(h.dir, "helm")
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(h.dir, "super.kubeconfig"),
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := command.CombinedOutput()
	return string(out), err
}

// Must runs a command of Helm, which has to succeed.
func (h Helm) Must(ctx context.Context, args ...string) {
	GinkgoHelper()
	out, err := h.Run(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), out)
}
