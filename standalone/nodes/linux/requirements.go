package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The directories in which CNI plugins are looked for: Debian's, and the one of everybody else.
var pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin"}

// packages are those of Debian that have what a node runs and this repository does not build.
var packages = []struct {
	name     string
	programs []string
}{
	{"containernetworking-plugins", []string{"bridge", "host-local", "loopback", "portmap"}},
	{"iptables", []string{"iptables", "iptables-save", "iptables-restore"}},
	{"mount", []string{"mount", "umount"}},
	{"nftables", []string{"nft"}},
	{"runc", []string{"runc"}},
}

// check says all that keeps a node from running on this machine, and how to get it.
func (o Options) check() error {
	if runtime.GOOS != "linux" {
		return errors.New("a real node needs Linux: use simulated ones, such as --nodes=3")
	}
	var problems []error
	if os.Geteuid() != 0 {
		problems = append(problems, errors.New("root's rights are missing: run it with sudo"))
	}
	if missing := notBuilt(o.Programs); len(missing) > 0 {
		problems = append(problems, fmt.Errorf("%s is missing %s: run make node", o.Programs, strings.Join(missing, ", ")))
	}
	if o.Images != "" {
		if _, err := os.ReadDir(o.Images); err != nil {
			problems = append(problems, fmt.Errorf("the directory of images cannot be read: %w", err))
		}
	}
	if missing := notInstalled(); len(missing) > 0 {
		problems = append(problems, fmt.Errorf("packages are missing: apt-get install %s", strings.Join(missing, " ")))
	}
	if len(problems) > 0 {
		return fmt.Errorf("a real node cannot run here: %w", errors.Join(problems...))
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

// notInstalled are the packages of the programs that are missing.
func notInstalled() []string {
	var missing []string
	for _, pkg := range packages {
		if !allInstalled(pkg.programs) {
			missing = append(missing, pkg.name)
		}
	}
	return missing
}

func allInstalled(programs []string) bool {
	for _, name := range programs {
		if !installed(name) {
			return false
		}
	}
	return true
}

func installed(name string) bool {
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	return slices.ContainsFunc(append([]string{"/usr/sbin", "/sbin"}, pluginDirs...), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}
