package modules

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// others are the modules that build programs of other projects. These pin the
// versions of Kubernetes that they were released with. Every other nested
// module contains code of this project and uses the root's versions.
var others = []string{"hack/tools", "test/chart", "test/conformance/sample-apiserver", "test/node", "test/node/metrics-server", "test/node/traefik"}

// goMod is what `go mod edit -json` prints of a go.mod.
type goMod struct {
	Module  struct{ Path string }
	Require []version
	Replace []struct{ Old, New version }
}

// version is a version of a module.
type version struct{ Path, Version string }

// read returns the go.mod of a folder of the project.
func read(t *testing.T, dir string) goMod {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Join(root, dir, "go.mod")).Output()
	if err != nil {
		t.Fatalf("read go.mod of %s: %v", dir, err)
	}
	var mod goMod
	if err := json.Unmarshal(out, &mod); err != nil { //nolint:musttag // the fields are named as in the output
		t.Fatalf("read go.mod of %s: %v", dir, err)
	}
	return mod
}

// required returns what a module requires, with its replacements. Folders of
// the project, which have no version, are left out.
func (m goMod) required() []version {
	replaced := map[string]version{}
	for _, r := range m.Replace {
		replaced[r.Old.Path] = r.New
	}
	var all []version
	for _, r := range m.Require {
		if other, ok := replaced[r.Path]; ok {
			r = other
		}
		if r.Version != "" {
			all = append(all, r)
		}
	}
	return all
}

// nested returns the folders of all modules but the root's.
func nested(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.Name() == "go.mod" && filepath.Dir(path) != root:
			dir, err := filepath.Rel(root, filepath.Dir(path))
			dirs = append(dirs, filepath.ToSlash(dir))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// release returns the Kubernetes release that a module belongs to: k8s.io/api
// v0.36.3 is part of v1.36.3. It is empty for modules that are not part of
// Kubernetes' releases.
func release(path, version string) string {
	switch {
	case path == "k8s.io/kubernetes":
		return version
	case strings.HasPrefix(path, "k8s.io/") && strings.HasPrefix(version, "v0.") && !strings.HasPrefix(version, "v0.0.0-"):
		return "v1." + strings.TrimPrefix(version, "v0.")
	default:
		return ""
	}
}

// TestKubernetesVersionsAgree: all code of the project is built with the same
// Kubernetes and the same controller-runtime.
func TestKubernetesVersionsAgree(t *testing.T) {
	want := map[string]string{} // versions by path
	for _, r := range read(t, ".").required() {
		want[r.Path] = r.Version
	}
	kubernetes := release("k8s.io/api", want["k8s.io/api"])
	for _, dir := range append(nested(t), ".") {
		if slices.Contains(others, dir) {
			continue
		}
		for _, r := range read(t, dir).required() {
			if got := release(r.Path, r.Version); got != "" && got != kubernetes {
				t.Errorf("%s requires %s %s, which is of Kubernetes %s, not %s", dir, r.Path, r.Version, got, kubernetes)
			}
			if r.Path == "sigs.k8s.io/controller-runtime" && r.Version != want[r.Path] {
				t.Errorf("%s requires %s %s, and the root module %s", dir, r.Path, r.Version, want[r.Path])
			}
		}
	}
}

// TestOperatorsAreBuiltWithTheRootsVersions: with others, the packages of
// Kubernetes would be compiled once more for them.
func TestOperatorsAreBuiltWithTheRootsVersions(t *testing.T) {
	want := map[string]string{} // versions by path
	for _, r := range read(t, ".").required() {
		want[r.Path] = r.Version
	}
	for _, r := range read(t, "test/operators").Replace {
		if r.New.Version != want[r.Old.Path] {
			t.Errorf("test/operators replaces %s by %s, and the root module requires %s", r.Old.Path, r.New.Version, want[r.Old.Path])
		}
	}
}

// TestModulesAreNamedByTheirFolders: a module of the project has the path of
// its folder. The examples are deliberately modules outside of the project.
func TestModulesAreNamedByTheirFolders(t *testing.T) {
	for _, dir := range nested(t) {
		if strings.HasPrefix(dir, "test/plugins/") {
			continue
		}
		if got, want := read(t, dir).Module.Path, read(t, ".").Module.Path+"/"+dir; got != want {
			t.Errorf("the module in %s is called %s, not %s", dir, got, want)
		}
	}
}

// TestModulesAreDescribed: CONTRIBUTING.md names every nested module.
func TestModulesAreDescribed(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	modules := nested(t)
	if len(modules) == 0 {
		t.Fatal("no nested module was found")
	}
	for _, dir := range modules {
		if !strings.Contains(string(document), "`"+dir+"`") {
			t.Errorf("CONTRIBUTING.md does not say what the module `%s` is for", dir)
		}
	}
	for _, dir := range others {
		if !slices.Contains(modules, dir) {
			t.Errorf("%s is no module", dir)
		}
	}
}

func TestRelease(t *testing.T) {
	for module, want := range map[string]string{
		"k8s.io/kubernetes v1.36.3":                   "v1.36.3",
		"k8s.io/api v0.36.3":                          "v1.36.3",
		"k8s.io/klog/v2 v2.140.0":                     "",
		"k8s.io/utils v0.0.0-20260210185600-b8788abf": "",
		"sigs.k8s.io/controller-runtime v0.24.1":      "",
	} {
		path, version, _ := strings.Cut(module, " ")
		if got := release(path, version); got != want {
			t.Errorf("%s is of release %q, not %q", module, got, want)
		}
	}
}
