package naming_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

func TestShelved(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "view": "view", "a.b-c": "a.b-c",
		"system:node": "x--edtnkt35dlr6ueb4chin", "View": "x--dlg6adk", "x--a": "x--f0mirmd", " ": "x--40",
	} {
		got, err := naming.Shelved(name)
		if err != nil {
			t.Fatal(err)
		}
		if want != got && !strings.HasPrefix(got, "x--") {
			t.Errorf("Shelved(%q) = %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"a/b", "..", "a%2f", strings.Repeat(":", 157), strings.Repeat("a", 254)} {
		if got, err := naming.Shelved(name); err == nil {
			t.Errorf("Shelved(%q) = %q", name, got)
		}
	}
	if got := naming.UnshelvedText(`clusterroles "` + must(t, "system:node") + `" not found, nor "` + must(t, "é:x") + `"`); got != `clusterroles "system:node" not found, nor "é:x"` {
		t.Errorf("the text is %q", got)
	}
}

func must(t *testing.T, name string) string {
	t.Helper()
	stored, err := naming.Shelved(name)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// FuzzShelved: each name that has a stored one gets it back, and a custom
// resource can have it.
func FuzzShelved(f *testing.F) {
	for _, name := range []string{"view", "system:node", "x--40", "X--", "a.-b", strings.Repeat("é", 78)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		stored, err := naming.Shelved(name)
		if err != nil || name == "" {
			return
		}
		if wrong := validation.IsDNS1123Subdomain(stored); len(wrong) > 0 {
			t.Errorf("%q is stored as %q: %v", name, stored, wrong)
		}
		if back := naming.Unshelved(stored); back != name {
			t.Errorf("%q comes back as %q", name, back)
		}
	})
}
