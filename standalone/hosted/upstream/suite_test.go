package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type goPackage struct {
	ImportPath string   `json:"ImportPath"`
	Dir        string   `json:"Dir"`
	GoFiles    []string `json:"GoFiles"`
}

// linkedPackages returns the packages of which a host consists.
func linkedPackages(t *testing.T) []goPackage {
	t.Helper()
	return goList(t, "-deps", "../...")
}

func goList(t *testing.T, args ...string) []goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Dir,GoFiles"}, args...)...)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg goPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("read the list of packages: %v", err)
		}
		packages = append(packages, pkg)
	}
}

// compare fails the test if the entries of a file in testdata are not got. Each
// decision of the file must be one of those. It returns the entries.
func compare(t *testing.T, file string, got []string, decisions ...string) []decided {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseDecided(string(data), decisions)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	added, removed := difference(names(want), got)
	for _, entry := range added {
		t.Errorf("upstream has, and %s has not decided: %s", file, entry)
	}
	for _, entry := range removed {
		t.Errorf("upstream has no more: %s", entry)
	}
	if t.Failed() {
		t.Logf("docs/kubernetes-minors.md describes how to update testdata/%s", file)
	}
	return want
}

// decided is an entry of a list.
type decided struct{ name, decision string }

func names(list []decided) []string {
	all := make([]string, 0, len(list))
	for _, entry := range list {
		all = append(all, entry.name)
	}
	return all
}

// difference returns the entries of got that are not in want, and those of want
// that are not in got. An entry may occur several times.
func difference(want, got []string) (added, removed []string) {
	count := map[string]int{}
	for _, entry := range want {
		count[entry]--
	}
	for _, entry := range got {
		count[entry]++
	}
	for entry, n := range count {
		for ; n > 0; n-- {
			added = append(added, entry)
		}
		for ; n < 0; n++ {
			removed = append(removed, entry)
		}
	}
	slices.Sort(added)
	slices.Sort(removed)
	return added, removed
}

var (
	decisionLine = regexp.MustCompile(`^([a-z]+): .+$`)
	times        = regexp.MustCompile(` x ([2-9])$`)
)

// parseDecided returns the entries of a list: indented lines below a line
// "decision: reason".
func parseDecided(text string, decisions []string) ([]decided, error) {
	var entries []decided
	decision, used := "", true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		entry, indented := strings.CutPrefix(line, "  ")
		switch match := decisionLine.FindStringSubmatch(line); {
		case line == "", strings.HasPrefix(line, "#"):
		case indented && decision == "":
			return nil, fmt.Errorf("without a decision: %s", entry)
		case indented:
			used = true
			for _, name := range repeated(entry) {
				entries = append(entries, decided{name, decision})
			}
		case match == nil:
			return nil, fmt.Errorf("neither an entry nor a decision with a reason: %s", line)
		case !slices.Contains(decisions, match[1]):
			return nil, fmt.Errorf("the decision is none of %q: %s", decisions, line)
		case !used:
			return nil, fmt.Errorf("a decision without entries, before: %s", line)
		default:
			decision, used = match[1], false
		}
	}
	if !used {
		return nil, errors.New("a decision without entries at the end")
	}
	return entries, nil
}

func repeated(entry string) []string {
	match := times.FindStringSubmatch(entry)
	if match == nil {
		return []string{entry}
	}
	n := int(match[1][0] - '0')
	return slices.Repeat([]string{strings.TrimSuffix(entry, match[0])}, n)
}

func TestParseDecided(t *testing.T) {
	const list = "# why\n\noff: the gate is off\n  file.go Run context.TODO\n  file.go Stop context.TODO x 2\n"
	got, err := parseDecided(list, []string{"off"})
	want := []decided{
		{"file.go Run context.TODO", "off"}, {"file.go Stop context.TODO", "off"}, {"file.go Stop context.TODO", "off"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v)", got, err)
	}
	for list, reason := range map[string]string{
		"  file.go Run":                 "without a decision",
		"off\n  file.go Run":            "neither an entry nor",
		"off:\n  file.go Run":           "neither an entry nor",
		"on: always\n  file.go Run":     "none of",
		"off: one\noff: two\n  file.go": "without entries, before",
		"off: one\n":                    "without entries at the end",
	} {
		if got, err := parseDecided(list, []string{"off"}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %q and %v, want %q", list, got, err, reason)
		}
	}
}

func TestDifference(t *testing.T) {
	added, removed := difference([]string{"a", "b", "b", "c"}, []string{"d", "b", "a", "a"})
	if !slices.Equal(added, []string{"a", "d"}) || !slices.Equal(removed, []string{"b", "c"}) {
		t.Errorf("added %q and removed %q", added, removed)
	}
}
