package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// machineWide lists the kernel settings that a kubelet changes and that have no
// namespace, so that a change would outlive the node.
var machineWide = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// setKernel enables packet forwarding in the node's network, and keeps the
// kubelet from changing settings of this machine.
func setKernel() error {
	for _, setting := range machineWide {
		if err := detach(setting); err != nil {
			return fmt.Errorf("protect %s: %w", setting, err)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("enable packet forwarding: %w", err)
	}
	// The file exists with br_netfilter only. Without it, pods do not reach
	// each other through Services.
	err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the kernel does not filter packets of bridges: modprobe br_netfilter")
	}
	return err
}

// detach mounts a file over a kernel setting, so that writes do not change the
// setting.
func detach(setting string) error {
	path := filepath.Join("/proc/sys", setting)
	value, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file := filepath.Join(own, strings.ReplaceAll(setting, "/", "."))
	if err := os.WriteFile(file, value, 0o600); err != nil { //nolint:gosec // the settings are constants
		return err
	}
	return mount(file, path, "", unix.MS_BIND)
}
