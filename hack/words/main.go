// Words reports phrases that the project avoids, with the preferred form of
// each: phrases.txt has the list.
//
// It reads the prose of Markdown documents without code, and the comments and
// messages of Go files. A message is a string with a space in it. It covers the
// documents and folders in the constant covered. To add one, correct what "go
// run ./hack/words FOLDER" reports, and add it to the constant.
package main

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// covered has the documents and folders that are checked without arguments.
const covered = "README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/adding-a-kind.md docs/admins docs/architecture.md " +
	"docs/conformance.md docs/decisions docs/kubectl-vc.md docs/network-providers.md docs/plugin-authors.md docs/provisioner-authors.md " +
	"docs/real-node.md docs/scaling.md docs/security.md docs/troubleshooting.md apis cli cmd config controllers hack/cli hack/krew " +
	"hack/kinds hack/metrics hack/rbac hack/release hack/words/main.go hack/words/phrases.go hack/words/text.go internal standalone test " +
	"vnagent syncer plugins"

//go:embed phrases.txt
var list string

func main() {
	found, err := run(os.DirFS("."), os.Args[1:])
	for _, match := range found {
		fmt.Println(match)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	case len(found) > 0:
		fmt.Fprintf(os.Stderr, "%d phrases to avoid; hack/words/phrases.txt has the list\n", len(found))
		os.Exit(1)
	}
}

// run returns each phrase to avoid in the files and folders, as a line of
// output.
func run(tree fs.FS, paths []string) ([]string, error) {
	phrases, err := parse(list)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		paths = strings.Fields(covered)
	}
	var found []string
	for _, path := range paths {
		err := fs.WalkDir(tree, path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			paragraphs, err := read(tree, file)
			for _, m := range matches(phrases, paragraphs) {
				found = append(found, fmt.Sprintf("%s:%d: %q: write %s", file, m.line, m.text, m.instead))
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return found, nil
}

// read returns the paragraphs of a document, or the comments and messages of a
// Go file. It skips generated files and other types.
func read(tree fs.FS, file string) ([]paragraph, error) {
	ext := path.Ext(file)
	if ext != ".md" && ext != ".go" || strings.HasPrefix(path.Base(file), "zz_generated") {
		return nil, nil
	}
	source, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, err
	}
	if ext == ".md" {
		return markdown(string(source)), nil
	}
	return comments(source), nil
}
