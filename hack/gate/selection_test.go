package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/virtualcluster/virtualcluster/"

func TestChoose(t *testing.T) {
	all := []area{
		{name: "gateway", specs: []string{"gateway*"}, paths: []string{"gateway"}},
		{name: "converted", specs: []string{"converted*"}, paths: []string{"gateway", "converted"}},
		{name: "documents", paths: []string{"docs", "README.md"}},
	}
	users := map[string][]string{}
	for file, used := range map[string][]string{"pods": {"pods"}, "shared": {"shared", "pods", "gateway_forms"}} {
		for _, user := range used {
			file := "test/integration/" + file + "_test.go"
			users[file] = append(users[file], "test/integration/"+user+"_test.go")
		}
	}
	for name, tc := range map[string]struct{ changed, leftOut []string }{
		"nothing":                     {nil, []string{"gateway", "converted", "documents"}},
		"a package":                   {[]string{"converted/a/b.go"}, []string{"gateway", "documents"}},
		"one that another imports":    {[]string{"gateway/a.go"}, []string{"documents"}},
		"a file":                      {[]string{"README.md"}, []string{"gateway", "converted"}},
		"two":                         {[]string{"README.md", "converted/b.go"}, []string{"gateway"}},
		"what no area has":            {[]string{"README.md", "syncer/engine/a.go"}, nil},
		"a name that begins the same": {[]string{"gateways/a.go"}, nil},
		"specs of an area":            {[]string{"test/escapes/converted_a_test.go"}, []string{"gateway", "documents"}},
		"specs of none":               {[]string{"test/integration/pods_test.go"}, []string{"gateway", "converted", "documents"}},
		"what specs share":            {[]string{"test/integration/shared_test.go"}, []string{"converted", "documents"}},
		"specs that are gone":         {[]string{"test/integration/gone_test.go"}, nil},
		"what suites share":           {[]string{"test/kit/suite.go"}, nil},
		"its tests":                   {[]string{"test/local/local_test.go"}, nil},
		"a unit test":                 {[]string{"syncer/engine/a_test.go"}, []string{"gateway", "converted", "documents"}},
		"the Makefile":                {[]string{"Makefile"}, nil},
		"a go.mod":                    {[]string{"go.mod"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, a := range choose(all, tc.changed, users) {
				got = append(got, a.name)
			}
			if !slices.Equal(got, tc.leftOut) {
				t.Errorf("got %q, want %q", got, tc.leftOut)
			}
		})
	}
}

func TestLeftOut(t *testing.T) {
	const commit = "0123456789abcdef"
	s := selection{leftOut: []unchanged{
		{area{name: "converted", specs: []string{"converted*", "moves"}}, commit}, {area{name: "plugins", steps: []string{"test-plugins"}}, commit},
		{area{name: "words"}, commit},
	}}
	variable := s.variables()
	if len(variable) != 1 {
		t.Fatalf("got %q", variable)
	}
	skipped := regexp.MustCompile(strings.TrimPrefix(variable[0], "SKIP_FILES="))
	for file, want := range map[string]bool{
		"x/test/integration/converted_a_test.go": true, "x/test/escapes/converted_test.go": true, "x/test/integration/moves_test.go": true,
		"x/test/integration/moves_restored_test.go": false, "x/test/integration/unmoves_test.go": false, "x/test/kit/converted.go": false,
	} {
		if got := skipped.MatchString(file); got != want {
			t.Errorf("%s is left out: %v", file, got)
		}
	}
	out := &strings.Builder{}
	r, ran := fake(t, out, nil)
	r.selection = s
	if !r.run(t.Context(), []stage{{"tests", targets("test-unit", "test-plugins")}}).Green || !slices.Equal(*ran, []string{"test-unit"}) {
		t.Errorf("ran %q", *ran)
	}
	for _, want := range []string{"LEFT OUT converted (converted*, moves): nothing ", "LEFT OUT plugins (test-plugins): nothing it depends on has changed since 01234567, "} {
		if strings.Count(out.String(), want) != 2 {
			t.Errorf("got %s, want %q at the begin and in the summary", out, want)
		}
	}
	if strings.Contains(out.String(), "words") {
		t.Errorf("got %s, want nothing of an area without specs", out)
	}
	if got := (selection{}).variables(); got != nil {
		t.Errorf("got %q with nothing left out", got)
	}
}

// TestAreas: what the table names is there, and no specs have two areas.
func TestAreas(t *testing.T) {
	t.Chdir("../..")
	var steps []string
	for _, stage := range gate() {
		for _, step := range stage.steps {
			steps = append(steps, step.target)
		}
	}
	specs, err := filepath.Glob("test/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, a := range areas() {
		for _, p := range a.paths {
			if _, err := os.Stat(p); err != nil {
				t.Errorf("%s: %v", a.name, err)
			}
		}
		for _, s := range a.steps {
			if !slices.Contains(steps, s) {
				t.Errorf("%s: the gate has no step %s", a.name, s)
			}
		}
		for _, pattern := range a.specs {
			if !slices.ContainsFunc(specs, area{specs: []string{pattern}}.hasSpec) {
				t.Errorf("%s: there are no specs %s", a.name, pattern)
			}
		}
		for _, file := range specs {
			if !a.hasSpec(file) {
				continue
			}
			if owner[file] != "" {
				t.Errorf("%s is of %s and of %s", file, owner[file], a.name)
			}
			owner[file] = a.name
		}
	}
}

// TestPathsHaveWhatTheyImport: a change of a package concerns each area whose
// packages import it.
func TestPathsHaveWhatTheyImport(t *testing.T) {
	all := areas()
	for pkg, imported := range imports(t) {
		for _, a := range all {
			if !a.concerns(pkg) || len(a.specs)+len(a.steps) == 0 {
				continue
			}
			for _, dependency := range imported {
				if !a.concerns(dependency) && slices.ContainsFunc(all, func(b area) bool { return b.concerns(dependency) }) {
					t.Errorf("%s has %s, which imports %s, whose changes do not concern it", a.name, pkg, dependency)
				}
			}
		}
	}
}

// imports returns what each package of the project imports of it, directly or
// not, as folders.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	seen(t, root)
	all := map[string][]string{}
	for _, folder := range []string{
		"", "standalone", "dns", "capi", "hack/release", "test/chart", "test/plugins/example", "test/plugins/provisioner", "test/plugins/vpc",
	} {
		command := exec.Command("go", "list", "-f", `{{.Dir}} {{join .Deps " "}}`, "./...")
		command.Dir = filepath.Join(root, folder)
		out, err := command.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", folder, err)
		}
		for line := range strings.Lines(string(out)) {
			packages := strings.Fields(line)
			name, err := filepath.Rel(root, packages[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range packages[1:] {
				if dependency, found := strings.CutPrefix(p, module); found {
					all[name] = append(all[name], dependency)
				}
			}
		}
	}
	return all
}

// seen reads the folders of the project, so that Go's cache of test results
// knows that this test depends on them: it does not know what go list reads.
func seen(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, entry.Name()) {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
