// Package docs holds the project's documents, and tests that hold them against the tree.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// folders are those that a listing in architecture.md names, below a folder of the project.
func folders(t *testing.T, listing string) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\s*([a-z]+)/ `).FindAllStringSubmatch(listing, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// TestFoldersAreAsDescribed: every folder in the map is in the tree, and every folder of the tree is on the map.
func TestFoldersAreAsDescribed(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(read(t, "architecture.md"), -1)
	if len(blocks) < 2 {
		t.Fatal("architecture.md has no listings of folders")
	}
	for dir, listing := range map[string]string{"..": blocks[0][1], "../syncer": blocks[1][1]} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var tree []string
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" {
				tree = append(tree, e.Name())
			}
		}
		if described := folders(t, listing); !slices.Equal(described, tree) {
			t.Errorf("%s: architecture.md describes %v, the tree has %v", dir, described, tree)
		}
	}
}

// TestLinksLead: every relative link of a document leads to a file or a folder.
func TestLinksLead(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#]+)\)`)
	for _, document := range slices.Concat(documents, decisions, []string{"../README.md", "../CONTRIBUTING.md"}) {
		for _, m := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", document, m[1])
			}
		}
	}
}

// TestMakeTargetsExist: what the documents tell to type is there.
func TestMakeTargetsExist(t *testing.T) {
	makefile := read(t, "../Makefile")
	command := regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9-]+)")
	for _, document := range []string{"../README.md", "../CONTRIBUTING.md", "admins.md"} {
		for _, m := range command.FindAllStringSubmatch(read(t, document), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s says make %s, which the Makefile has not", document, m[1])
			}
		}
	}
}
