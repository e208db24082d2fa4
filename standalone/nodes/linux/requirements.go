package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/requirements"
)

// check returns all reasons why this machine cannot run a node, with their
// remedies.
func (o Options) check() error {
	problems := []error{requirements.ForRunning()}
	if missing := notBuilt(o.Programs); len(missing) > 0 {
		problems = append(problems, fmt.Errorf("%s is missing %s: run make node", o.Programs, strings.Join(missing, ", ")))
	}
	if o.Images != "" {
		if _, err := os.ReadDir(o.Images); err != nil {
			problems = append(problems, fmt.Errorf("read the directory of images: %w", err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("a real node cannot run here: %w", err)
	}
	return nil
}

func notBuilt(programs string) []string {
	var missing []string
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kube-proxy", "node-policies", "images"} {
		if _, err := os.Stat(filepath.Join(programs, name)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	return missing
}
