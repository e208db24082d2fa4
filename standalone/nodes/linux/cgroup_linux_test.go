package linux

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveTree(t *testing.T) {
	root := filepath.Join(t.TempDir(), "vc-node-0")
	for _, dir := range []string{"kubepods/burstable/pod1/container", "kubepods/besteffort", "system"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what is gone is no error
		if err := removeTree(root); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("the cgroup is still there: %v", err)
	}
}

// TestRemoveTreeInUse: a directory that cannot be removed keeps those above it,
// and the others go. A file stands for a process here.
func TestRemoveTreeInUse(t *testing.T) {
	root := t.TempDir()
	used, free := filepath.Join(root, "kubepods", "used"), filepath.Join(root, "kubepods", "free")
	for _, dir := range []string{used, free} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(used, "process"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(root); err == nil {
		t.Error("a cgroup in use was removed")
	}
	if _, err := os.Stat(used); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(free); !os.IsNotExist(err) {
		t.Errorf("the cgroup that is not in use is still there: %v", err)
	}
}

func TestMagicOf(t *testing.T) {
	if magicOf("/proc") == 0 {
		t.Error("/proc has no type of file system")
	}
	if magic := magicOf(filepath.Join(t.TempDir(), "none")); magic != 0 {
		t.Errorf("a directory that does not exist has the type %x", magic)
	}
}

// TestDelegate: every controller of a cgroup is turned on for those below it.
func TestDelegate(t *testing.T) {
	dir := t.TempDir()
	if err := delegate(dir); err == nil {
		t.Error("a directory without controllers is a cgroup")
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	for file, content := range map[string]string{filepath.Join(dir, "cgroup.controllers"): "cpu memory pids\n", control: ""} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := delegate(dir); err != nil {
		t.Fatal(err)
	}
	// A plain file keeps what was written last; the kernel adds each.
	if last, err := os.ReadFile(control); err != nil || string(last) != "+pids" {
		t.Errorf("the last controller that was turned on is %q (%v), want +pids", last, err)
	}
}
