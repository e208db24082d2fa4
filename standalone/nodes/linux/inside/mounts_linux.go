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
	// own is the directory of what belongs to this process alone. It is in memory, like all of /run.
	own = "/run/vc-node"
	// programs is where the node's programs are seen.
	programs = own + "/bin"
)

// mountAll gives the node a /var, a /run and a /proc of its own.
func mountAll(settings *Settings) error {
	// Before anything is hidden: both may be below /var or /run.
	bin, err := openDir(settings.Programs)
	if err != nil {
		return err
	}
	state, err := openDir(settings.State)
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(unix.Close(bin), unix.Close(state)) }() // they are mounted then, or all is lost
	if err := mountTree(bin, state); err != nil {
		return err
	}
	// Pods may have mounts that go both ways, as on any node.
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED)
}

func mountTree(bin, state int) error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := os.MkdirAll(programs, 0o755); err != nil { //nolint:gosec // what is secret in it is in files of their own
		return err
	}
	if err := bind(bin, programs); err != nil {
		return err
	}
	if err := bind(state, "/var"); err != nil {
		return err
	}
	if err := makeVar(); err != nil {
		return err
	}
	return mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
}

// makeVar makes what every program expects below /var.
func makeVar() error {
	for _, dir := range []string{"/var/lib", "/var/log", "/var/tmp"} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as on every machine
			return err
		}
	}
	if err := os.Symlink("/run", "/var/run"); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func openDir(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	return fd, nil
}

// bind shows an open directory at another place.
func bind(dir int, target string) error {
	return mount(filepath.Join("/proc/self/fd", strconv.Itoa(dir)), target, "", unix.MS_BIND)
}

func mount(source, target, kind string, flags uintptr) error {
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
