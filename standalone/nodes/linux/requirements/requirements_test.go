package requirements

import (
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
