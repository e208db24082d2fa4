package requirements

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// programs creates empty programs in a directory.
func programs(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingPackages(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	programs(t, dir, "vc-test-a", "vc-test-b")
	packages := []debianPackage{
		{"whole", []string{"vc-test-a", "vc-test-b"}},
		{"partly", []string{"vc-test-a", "vc-test-c"}},
		{"none", []string{"vc-test-d"}},
	}
	if missing := missingPackages(packages); !slices.Equal(missing, []string{"partly", "none"}) {
		t.Errorf("missing are %v", missing)
	}
}

func TestBuildingNeedsBusybox(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := ForBuilding(); err == nil || !strings.Contains(err.Error(), "apt-get install busybox-static") {
		t.Errorf("without busybox: got %v, want what to install", err)
	}
	programs(t, dir, "busybox")
	if err := ForBuilding(); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "busybox")) {
		t.Errorf("with an empty busybox: got %v, want its path", err)
	}
}

// TestCheckStatic: the shell of every distribution is linked dynamically, and
// this test, which is built without cgo, is not.
func TestCheckStatic(t *testing.T) {
	if err := checkStatic("/bin/sh"); err == nil || !strings.Contains(err.Error(), "linked dynamically") {
		t.Errorf("/bin/sh: got %v, want that it is linked dynamically", err)
	}
	path := filepath.Join(t.TempDir(), "static")
	if err := os.WriteFile(path, staticProgram(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkStatic(path); err != nil {
		t.Errorf("a static program: %v", err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), "/etc/passwd"} {
		if err := checkStatic(path); err == nil || !strings.Contains(err.Error(), "read "+path) {
			t.Errorf("got %v, want that %s is no program", err, path)
		}
	}
}

// staticProgram is the header of a program that loads nothing.
func staticProgram(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: 64,
	}
	if err := binary.Write(&text, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestInstalled: programs are found in PATH and among the CNI plugins, and those
// of a package that is there in part are missing.
func TestInstalled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	programs(t, dir, "vc-test-here")
	for name, want := range map[string]bool{"vc-test-here": true, "vc-test-gone": false} {
		if got := installed(name); got != want {
			t.Errorf("%q is installed: %v, want %v", name, got, want)
		}
	}
	found := 0
	for _, dir := range append(PluginDirs(), "/usr/sbin", "/sbin") {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // other distributions have other directories
		}
		for _, entry := range entries[:min(3, len(entries))] {
			if _, err := os.Stat(filepath.Join(dir, entry.Name())); err == nil && !installed(entry.Name()) {
				t.Errorf("%s in %s is not found", entry.Name(), dir)
			}
			found++
		}
	}
	if found == 0 {
		t.Error("no directory of programs that are not in PATH exists")
	}
}

// TestForRunning: everything that is missing is reported at once, with what to
// do about it.
func TestForRunning(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := ForRunning()
	if missing := missingPackages(runtimePackages); len(missing) > 0 {
		if err == nil || !strings.Contains(err.Error(), "apt-get install "+strings.Join(missing, " ")) {
			t.Errorf("got %v, want that %v are missing", err, missing)
		}
	}
	if noRoot := err != nil && strings.Contains(err.Error(), "run it with sudo"); noRoot != (os.Geteuid() != 0) {
		t.Errorf("as user %d, got %v", os.Geteuid(), err)
	}
}

func TestCheckCgroups(t *testing.T) {
	empty, v1, v2 := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(v1, "memory"), 0o755); err != nil {
		t.Fatal(err)
	}
	programs(t, v2, "cgroup.controllers")
	for name, c := range map[string]struct {
		root string
		want string // in the error; empty if there is none
	}{
		"not there":   {filepath.Join(empty, "none"), "find cgroups"},
		"not mounted": {empty, "no cgroups are mounted"},
		"v1":          {v1, ""},
		"v2":          {v2, ""},
		"read-only":   {"/proc/1", "is not writable"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkCgroups(c.root)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
