package modules

import (
	"os/exec"
	"strings"
	"testing"
)

// TestAProgramOfOthersImportsNothingInternal: the example of a syncer with a kind
// of its own is in this repository, where Go would let it.
func TestAProgramOfOthersImportsNothingInternal(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, "./test/integration/testdata/podtemplates")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for imported := range strings.Lines(string(out)) {
		if strings.Contains(imported, "/internal/") {
			t.Errorf("it imports %s", imported)
		}
	}
	if !strings.Contains(string(out), "/syncer/app") {
		t.Errorf("it imports %s, and not the syncer", out)
	}
}
