package installation

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestKindsAreThoseOfTheChart: a kind that a template adds is checked by doctor
// and deleted by uninstall.
func TestKindsAreThoseOfTheChart(t *testing.T) {
	known := map[string]bool{}
	for _, k := range append(Kinds(), OptionalKinds()...) {
		known[k.GroupVersion().String()+" "+k.Kind] = true
		known[k.Group+"/ "+k.Kind] = true // a template whose version is a value
	}
	kind := regexp.MustCompile(`(?m)^apiVersion: ([^\s{]+)(?:\{\{.*\}\})?\nkind: (\S+)$`)
	found := map[string]bool{}
	err := fs.WalkDir(os.DirFS("../../charts/virtualcluster/templates"), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(file, ".txt") {
			return err
		}
		data, err := os.ReadFile("../../charts/virtualcluster/templates/" + file)
		for _, m := range kind.FindAllStringSubmatch(string(data), -1) {
			found[m[1]+" "+m[2]] = true
			if !known[m[1]+" "+m[2]] {
				t.Errorf("%s: the kind %s %s is unknown", file, m[1], m[2])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		if !found[k.GroupVersion().String()+" "+k.Kind] {
			t.Errorf("the chart has no %s", k.Kind)
		}
	}
}
