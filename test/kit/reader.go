package kit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/test/documents"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// Reader does what the documents say, in a directory of its own that has what
// they name of the project.
type Reader struct {
	// Dir is the directory.
	Dir string
	// Terminal reports whether commands run in a terminal, in which the input is
	// typed.
	Terminal bool
}

// NewReader returns a reader with programs, and with directories of the project,
// by name.
func NewReader(super *local.SuperCluster, programs, directories map[string]string) Reader {
	GinkgoHelper()
	r := Reader{Dir: TempDir()}
	r.link("", directories)
	// kubectl finds the plugin beside itself.
	r.link("bin", programs)
	r.link(".vc", map[string]string{"super.kubeconfig": filepath.Join(super.Dir, "super.kubeconfig")})
	return r
}

// link makes links in a directory to files, by name.
func (r Reader) link(dir string, files map[string]string) {
	GinkgoHelper()
	dir = filepath.Join(r.Dir, dir)
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	for name, file := range files {
		target, err := filepath.Abs(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Symlink(target, filepath.Join(dir, name))).To(Succeed())
	}
}

// Kubeconfig returns the file of a tenant, or of the super cluster.
func (r Reader) Kubeconfig(of string) string { return filepath.Join(r.Dir, ".vc", of+".kubeconfig") }

// Run runs a script for a block, which has to succeed.
func (r Reader) Run(ctx context.Context, block documents.Block, script, input string) {
	GinkgoHelper()
	of := "super"
	if block.Context != "" {
		of = block.Context
	}
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	if r.Terminal {
		file := filepath.Join(r.Dir, "block.sh")
		Expect(os.WriteFile(file, []byte(script), 0o600)).To(Succeed())
		command = exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", "bash -euo pipefail "+file, os.DevNull)
	}
	command.Dir, command.Stdin, command.WaitDelay = r.Dir, strings.NewReader(input), Soon
	command.Env = append(os.Environ(), "KUBECONFIG="+r.Kubeconfig(of), "HOME="+r.Dir, "SHELL=/bin/sh",
		"PATH="+filepath.Join(r.Dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s\n%s%s", block, script, input, out)
}
