package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// own is the private directory of this process. It is in memory, like all
	// of /run.
	own = "/run/vc-node"
	// programs is the mount point of the node's programs.
	programs = own + "/bin"
	// images is the mount point of additional image archives, if there are any.
	images = own + "/images"
	// plugins has the configuration of the pods' network, and plugins of CNI in
	// addition to those of this machine. It is in /var, so that others can be
	// installed as on any node.
	plugins = "/var/lib/cni"
)

// shown is an open directory of this machine, and its mount point in the node.
type shown struct {
	fd     int
	target string
}

// mountAll mounts a /var, a /run and a /proc for the node.
func mountAll(settings *Settings) error {
	// Opened first, since mounts on /var or /run may hide them.
	dirs, err := openAll(settings)
	defer func() {
		for _, dir := range dirs {
			_ = unix.Close(dir.fd) // it is mounted, or setting up the node fails
		}
	}()
	if err != nil {
		return err
	}
	if err := mountTree(dirs); err != nil {
		return err
	}
	// Pods may use bidirectional mounts, as on any node.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED)
}

// openAll opens the directories of this machine that the node sees. The caller
// must close those returned with an error too.
func openAll(settings *Settings) ([]shown, error) {
	var dirs []shown
	for target, path := range map[string]string{programs: settings.Programs, images: settings.Images, "/var": settings.State} {
		if path == "" {
			continue
		}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return dirs, fmt.Errorf("open %s: %w", path, err)
		}
		dirs = append(dirs, shown{fd: fd, target: target})
	}
	return dirs, nil
}

func mountTree(dirs []shown) error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := dir.mount(); err != nil {
			return err
		}
	}
	if err := makeVar(); err != nil {
		return err
	}
	return mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
}

func (s shown) mount() error {
	if err := os.MkdirAll(s.target, 0o755); err != nil { //nolint:gosec // secret files have modes of their own
		return err
	}
	return mount(filepath.Join("/proc/self/fd", strconv.Itoa(s.fd)), s.target, "", unix.MS_BIND)
}

// makeVar creates the directories that programs expect below /var.
func makeVar() error {
	for _, dir := range []string{"/var/lib", "/var/log", "/var/tmp", plugins + "/bin", plugins + "/net.d"} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the usual mode
			return err
		}
	}
	if err := os.Symlink("/run", "/var/run"); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func mount(source, target, kind string, flags uintptr) error {
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
