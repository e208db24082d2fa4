package local

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// DNSBinary is the environment variable with the path of vc-dns. The default is
// the one beside vc-standalone.
const DNSBinary = "VC_DNS"

// StartDNS runs vc-dns, the DNS that tenants share, with its ports at a loopback
// address. stop kills it, and is idempotent.
func (s *SuperCluster) StartDNS(address string, log io.Writer) (stop func(), err error) {
	corefile := filepath.Join(s.Dir, "Corefile-"+address)
	text := fmt.Sprintf(".:9853 {\n bind %s\n tenants {\n kubeconfig %s\n listen %s\n }\n tenantnames\n}\n",
		address, filepath.Join(s.Dir, kubeconfigFile), address)
	if err := os.WriteFile(corefile, []byte(text), 0o600); err != nil {
		return nil, err
	}
	binary := cmp.Or(os.Getenv(DNSBinary), filepath.Join(filepath.Dir(os.Getenv(Binary)), "vc-dns"))
	ctx, cancel := context.WithCancel(context.Background())
	process := exec.CommandContext(ctx, binary, "-conf", corefile)
	process.Stdout, process.Stderr = log, log
	process.Env = Environment()
	if err := process.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start vc-dns (build it with make build, or set %s): %w", DNSBinary, err)
	}
	return sync.OnceFunc(func() {
		cancel()
		_ = process.Wait() // it was killed
	}), nil
}
