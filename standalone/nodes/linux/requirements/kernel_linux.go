package requirements

import (
	"fmt"
	"os/exec"
	"syscall"
)

// accessWrite is W_OK of access(2), which package syscall does not export.
const accessWrite = 2

// writable reports whether this process may create files in a directory. It is
// false for root on a read-only mount.
func writable(dir string) bool { return syscall.Access(dir, accessWrite) == nil }

// checkNamespaces returns an error if this process cannot create the namespaces
// that a node needs.
func checkNamespaces() error {
	command := exec.Command("true") //nolint:noctx // it exits at once
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := command.Run(); err != nil {
		return fmt.Errorf("create namespaces: %w: run it on the host, or in a privileged container", err)
	}
	return nil
}
