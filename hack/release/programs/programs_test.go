package programs_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/hack/release/programs"
)

const root = "../../.."

// TestAllProgramsAreListed: a program of the project is released, or is one of
// those that only developers use.
func TestAllProgramsAreListed(t *testing.T) {
	developers := []string{"vc-bench"}
	var listed []string
	for _, p := range programs.All() {
		listed = append(listed, filepath.Join(root, p.Module, "cmd", p.Name))
		if p.Description == "" {
			t.Errorf("%s has no description", p.Name)
		}
	}
	for _, module := range []string{".", "capi", "dns", "standalone"} {
		found, err := filepath.Glob(filepath.Join(root, module, "cmd", "*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("the module %s has no programs", module)
		}
		for _, dir := range found {
			if !slices.Contains(listed, dir) && !slices.Contains(developers, filepath.Base(dir)) {
				t.Errorf("%s is neither released nor a program for developers", dir)
			}
		}
	}
}

// TestTags: the chart has the images with tags of their own, and they are those
// of the versions that are compiled.
func TestTags(t *testing.T) {
	for _, p := range programs.All() {
		if (p.Tag != "") != (p.Package != "") {
			t.Errorf("%s is of the package %q, and has the tag %q", p.Name, p.Package, p.Tag)
		}
		if p.Tag == "" {
			continue
		}
		version, _, _ := strings.Cut(p.Tag, "-")
		for file, want := range map[string]string{
			filepath.Join(p.Module, "go.mod"):              p.Package + " v" + version + "\n",
			"charts/virtualcluster/templates/_helpers.tpl": p.Tag,
			"config/default/workloads.yaml":                "image: " + p.Name + ":" + p.Tag,
		} {
			if content, err := os.ReadFile(filepath.Join(root, file)); err != nil || !strings.Contains(string(content), want) {
				t.Errorf("%s lacks %q: %v", file, want, err)
			}
		}
	}
}

func TestOn(t *testing.T) {
	for platform, want := range map[programs.Platform]string{
		{OS: "linux", Architecture: "arm64"}:  "etcd kubectl-vc vc-capi vc-dns vc-gateway vc-host vc-manager vc-standalone vc-syncer vn-agent",
		{OS: "darwin", Architecture: "amd64"}: "kubectl-vc vc-standalone",
	} {
		var names []string
		for _, p := range programs.On(platform, programs.All()) {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("on %s: %s, want %s", platform, got, want)
		}
	}
}

// TestBuild compiles a program in two folders for another architecture: the
// result depends on neither.
func TestBuild(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=unexpected")
	platform := programs.Platform{OS: "linux", Architecture: "arm64"}
	program := programs.Program{Name: "hello", Module: "nested"}
	var results [][]byte
	for range 2 {
		dir := t.TempDir()
		write(t, dir, "nested/go.mod", "module example.com/hello\n\ngo 1.26\n")
		write(t, dir, "nested/cmd/hello/main.go", "package main\n\nvar version string\n\nfunc main() { println(version) }\n")
		write(t, dir, "nested/cmd/hello/tag.go", "//go:build unexpected\n\npackage main\n\nfunc init() { undefined() }\n")
		b := programs.Build{Root: dir, Flags: "-s -w -X main.version=v1.2.3-linked", Out: filepath.Join(dir, "out")}
		if err := b.Run(t.Context(), []programs.Platform{platform}, []programs.Program{program}); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(b.File(platform, program))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, content)
		file, err := elf.Open(b.File(platform, program))
		if err != nil {
			t.Fatal(err)
		}
		if file.Machine != elf.EM_AARCH64 || file.Section(".interp") != nil {
			t.Errorf("%s is not a static program for arm64", b.File(platform, program))
		}
	}
	if !slices.Equal(results[0], results[1]) {
		t.Error("the same sources in two folders make different programs")
	}
	if !strings.Contains(string(results[0]), "v1.2.3-linked") {
		t.Error("the program has no version")
	}
}

func TestBuildReportsTheModule(t *testing.T) {
	b := programs.Build{Root: t.TempDir(), Out: t.TempDir()}
	err := b.Run(t.Context(), programs.Linux(), []programs.Program{{Name: "hello", Module: "missing"}})
	if err == nil || !strings.Contains(err.Error(), "compile hello in missing for linux_amd64") {
		t.Error(err)
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
