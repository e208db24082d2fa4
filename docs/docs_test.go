// Package docs holds the project's documents, and tests that hold them against
// the tree.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// folders are those that a listing in architecture.md names, below a folder of
// the project.
func folders(t *testing.T, listing string) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\s*([a-z]+)/ `).FindAllStringSubmatch(listing, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// TestFoldersAreAsDescribed: every folder in the map is in the tree, and every
// folder of the tree is on the map.
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

// documents returns every Markdown document of the project but the results of runs.
func documents(t *testing.T) []string {
	t.Helper()
	return append(under(t, ".", ".md"), "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md")
}

// under returns the files below a folder that have one of the suffixes. It does
// not enter hidden folders and bin.
func under(t *testing.T, dir string, suffixes ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "bin") {
			return filepath.SkipDir
		}
		has := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
		if entry.Type().IsRegular() && slices.ContainsFunc(suffixes, has) {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// anchors returns the fragments by which links address the headings of a document.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	text = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```").ReplaceAllString(text, "")
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		slug := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return found
}

// TestLinksLead checks that every relative link of a document leads to a file
// or a folder and, with a fragment, to a heading.
func TestLinksLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)`)
	for _, document := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, document), -1) {
			target, fragment := filepath.Join(filepath.Dir(document), m[1]), m[2]
			if m[1] == "" {
				target = document
			}
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", document, m[1])
			} else if fragment != "" && !anchors(read(t, target))[fragment] {
				t.Errorf("%s links to %s#%s, which has no such heading", document, m[1], fragment)
			}
		}
	}
}

// TestMentionsLead checks that the documents exist which sources and messages
// mention, such as docs/security.md.
func TestMentionsLead(t *testing.T) {
	mention := regexp.MustCompile(`\bdocs/[A-Za-z0-9_/.-]+\.md\b`)
	for _, file := range under(t, "..", ".go", ".yaml", ".yml", ".md", ".tmpl", "Makefile", "go.mod") {
		for _, name := range mention.FindAllString(read(t, file), -1) {
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s mentions %s, which does not exist", file, name)
			}
		}
	}
}

// TestReasonsExist checks that the sources have every reason of an event or
// condition that the troubleshooting page names.
func TestReasonsExist(t *testing.T) {
	var sources strings.Builder
	for _, file := range slices.Concat(under(t, "../apis", ".go"), under(t, "../syncer", ".go"), under(t, "../plugins", ".go")) {
		if !strings.HasSuffix(file, "_test.go") {
			sources.WriteString(read(t, file))
		}
	}
	kubernetes := []string{"FailedMount", "FailedScheduling", "ProvisioningFailed"}
	camel := regexp.MustCompile("(?m)(?:^|`| {2})([A-Z][a-z]+(?:[A-Z][A-Za-z]+)+)(?:`| {2})")
	page := regexp.MustCompile("(?m)^(Pod|PersistentVolumeClaim) +").ReplaceAllString(read(t, "troubleshooting.md"), "")
	found := camel.FindAllStringSubmatch(page, -1)
	if len(found) == 0 {
		t.Fatal("troubleshooting.md names no reasons")
	}
	for _, m := range found {
		if !slices.Contains(kubernetes, m[1]) && !strings.Contains(sources.String(), `"`+m[1]+`"`) {
			t.Errorf("troubleshooting.md names the reason %s, which the sources do not have", m[1])
		}
	}
}

// TestMessagesAreQuoted checks that the messages which the troubleshooting page
// quotes are those of the sources.
func TestMessagesAreQuoted(t *testing.T) {
	var sources strings.Builder
	for _, file := range slices.Concat(under(t, "../controllers", ".go"), under(t, "../syncer", ".go"), under(t, "../plugins", ".go")) {
		if !strings.HasSuffix(file, "_test.go") {
			sources.WriteString(read(t, file))
		}
	}
	page := read(t, "troubleshooting.md")
	for _, message := range []string{
		"pods may not mount directories of their node",
		"no port of their node",
		"pods may not mount volumes of this type; use a PersistentVolumeClaim",
		"the scheduler chooses the node; say which ones will do with spec.nodeSelector or spec.affinity",
		"the super cluster does not offer",
		"names no class",
		"the name belongs to an object that is not this cluster's; use another name",
		"due to exceeding quota limit",
		"is not allowed, since it could draw the traffic of others",
		"is not allowed; the load balancer chooses its address",
		"are none of theirs, nor in spec.policy.endpointCIDRs",
		"does not exist: create it with the kubeconfig under the key",
	} {
		if !strings.Contains(page, message) {
			t.Errorf("troubleshooting.md does not quote %q", message)
		}
		if !strings.Contains(sources.String(), message) {
			t.Errorf("troubleshooting.md quotes %q, which the sources do not have", message)
		}
	}
}

// TestReadmeNamesEveryKind checks that the README says of each built-in kind
// how it is synced.
func TestReadmeNamesEveryKind(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "../README.md"), "## What is synced\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, flow := range resources.All(resources.Agent{}, nil) {
		name := flow.Erase().Name
		if !regexp.MustCompile(`(?m)^\| ([A-Za-z]+, )*` + name + `(, [A-Za-z]+)* \|`).MatchString(table) {
			t.Errorf("README.md does not say how %s is synced", name)
		}
	}
}

// TestAdminsGuideIsComplete checks that the index of the admins' guide links to
// each of its pages.
func TestAdminsGuideIsComplete(t *testing.T) {
	index := read(t, "admins/README.md")
	for _, page := range under(t, "admins", ".md") {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("admins/README.md does not link to %s", name)
		}
	}
}

// TestDecisionsAreListed checks that the index of decisions has each of them,
// with its title.
func TestDecisionsAreListed(t *testing.T) {
	index := read(t, "decisions/README.md")
	for _, page := range under(t, "decisions", ".md") {
		name := filepath.Base(page)
		title, _, _ := strings.Cut(strings.TrimPrefix(read(t, page), "# "), "\n")
		if row := "| [" + name[:4] + "](" + name + ") | " + title + " |\n"; name != "README.md" && !strings.Contains(index, row) {
			t.Errorf("decisions/README.md does not have the row %s", row)
		}
	}
}

// TestMakeTargetsExist checks that the Makefile has the targets that the
// documents name.
func TestMakeTargetsExist(t *testing.T) {
	makefile := read(t, "../Makefile")
	command := regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9-]+)")
	for _, document := range documents(t) {
		for _, m := range command.FindAllStringSubmatch(read(t, document), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s says make %s, which the Makefile does not have", document, m[1])
			}
		}
	}
}
