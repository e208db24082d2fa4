// Package requirements reports what a machine lacks to build or to run a real
// node. It imports only the standard library, so that `make node` can check the
// machine before it compiles anything else.
package requirements

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// cgroupRoot is where every distribution mounts cgroups.
const cgroupRoot = "/sys/fs/cgroup"

var errNotLinux = errors.New("a real node needs Linux: use simulated ones, such as --nodes=3")

// PluginDirs returns the directories that may contain CNI plugins: Debian's,
// and that of other distributions.
func PluginDirs() []string { return []string{"/usr/lib/cni", "/opt/cni/bin"} }

// debianPackage is a package of Debian with programs that a node runs and this
// repository does not build.
type debianPackage struct {
	name     string
	programs []string
}

var runtimePackages = []debianPackage{
	{"containernetworking-plugins", []string{"bridge", "host-local", "loopback", "portmap", "tuning"}},
	{"iptables", []string{"iptables", "iptables-save", "iptables-restore"}},
	{"mount", []string{"mount", "umount"}},
	{"nftables", []string{"nft"}},
	{"runc", []string{"runc"}},
}

// ForBuilding returns an error if `make node` cannot build on this machine.
func ForBuilding() error {
	if runtime.GOOS != "linux" {
		return errNotLinux
	}
	path, err := exec.LookPath("busybox")
	if err != nil {
		return errors.New("busybox is missing, which the images contain: apt-get install busybox-static")
	}
	return checkStatic(path)
}

// ForRunning returns all reasons why this machine cannot run a real node.
func ForRunning() error {
	if runtime.GOOS != "linux" {
		return errNotLinux
	}
	var problems []error
	if missing := missingPackages(runtimePackages); len(missing) > 0 {
		problems = append(problems, fmt.Errorf("packages are missing: apt-get install %s", strings.Join(missing, " ")))
	}
	if os.Geteuid() != 0 {
		// Without root the other checks would fail only because of that.
		return errors.Join(append(problems, errors.New("root privileges are missing: run it with sudo"))...)
	}
	return errors.Join(append(problems, checkCgroups(cgroupRoot), checkNamespaces())...)
}

// checkStatic returns an error if a program needs libraries, which images do
// not contain.
func checkStatic(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically, and the images contain no libraries: apt-get install busybox-static", path)
		}
	}
	return nil
}

// missingPackages returns the names of packages with missing programs.
func missingPackages(packages []debianPackage) []string {
	var missing []string
	for _, pkg := range packages {
		if !allInstalled(pkg.programs) {
			missing = append(missing, pkg.name)
		}
	}
	return missing
}

func allInstalled(programs []string) bool {
	return !slices.ContainsFunc(programs, func(name string) bool { return !installed(name) })
}

// installed reports whether a program is in PATH, in sbin, which sudo and some
// shells omit from PATH, or among the CNI plugins.
func installed(name string) bool {
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	return slices.ContainsFunc(append(PluginDirs(), "/usr/sbin", "/sbin"), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// checkCgroups returns an error if no cgroups can be created below root.
func checkCgroups(root string) error {
	hierarchies := []string{root}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil { // cgroup v1: a directory for each controller
		if hierarchies, err = subdirectories(root); err != nil {
			return fmt.Errorf("find cgroups: %w", err)
		}
	}
	if len(hierarchies) == 0 {
		return fmt.Errorf("no cgroups are mounted at %s: mount them, or run it outside of a container", root)
	}
	for _, dir := range hierarchies {
		if !writable(dir) {
			return fmt.Errorf("%s is not writable: a container needs cgroups mounted read-write, as in privileged containers", dir)
		}
	}
	return nil
}

// subdirectories returns the subdirectories of a directory, without symbolic
// links.
func subdirectories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(dir, entry.Name()))
		}
	}
	return dirs, nil
}
