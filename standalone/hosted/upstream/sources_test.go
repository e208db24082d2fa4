package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestSources tests that the functions of sources.txt have the source text with
// which hosted was compared last. hosted assembles them again, so a change of
// theirs has no effect until it is repeated.
func TestSources(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "sources.txt"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseDecided(string(data), []string{"calls", "repeats"})
	if err != nil {
		t.Fatal(err)
	}
	dirs := directories(t, list)
	for _, entry := range list {
		name, want, _ := strings.Cut(entry.name, " ")
		pkg, function := splitName(name)
		got, err := functionHash(dirs[pkg], function)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got != want:
			t.Errorf("compare hosted with %s, which it %s and which has changed; then write this line:\n  %s %s",
				name, entry.decision, name, got)
		}
	}
}

// splitName splits the name of a function or method, such as
// k8s.io/kubernetes/cmd/kube-apiserver/app.Config.Complete, into the import path
// of its package and its name there.
func splitName(name string) (pkg, function string) {
	dir, base := path.Split(name)
	last, function, _ := strings.Cut(base, ".")
	return dir + last, function
}

// directories returns the directories of the functions' packages.
func directories(t *testing.T, list []decided) map[string]string {
	t.Helper()
	var paths []string
	for _, entry := range list {
		name, _, _ := strings.Cut(entry.name, " ")
		pkg, _ := splitName(name)
		paths = append(paths, pkg)
	}
	found := map[string]string{}
	for _, pkg := range goList(t, paths...) {
		found[pkg.ImportPath] = pkg.Dir
	}
	return found
}

// functionHash returns a hash of the function or method in the package,
// without its comments.
func functionHash(dir, function string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, decl := range file.Decls {
			if _, ok := decl.(*ast.FuncDecl); ok && declName(decl) == function {
				return hash(set, decl)
			}
		}
	}
	return "", fmt.Errorf("no such function in %s", dir)
}

func hash(set *token.FileSet, decl ast.Decl) (string, error) {
	var text bytes.Buffer
	if err := format.Node(&text, set, decl); err != nil {
		return "", err
	}
	sum := sha256.Sum256(text.Bytes())
	return hex.EncodeToString(sum[:6]), nil
}

func TestFunctionHash(t *testing.T) {
	dir := t.TempDir()
	write := func(body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte("package p\n\n"+body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hashOf := func(function string) string {
		t.Helper()
		sum, err := functionHash(dir, function)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	write("type T struct{}\n\nfunc (*T) Run() int { return 1 }\nfunc Run() int { return 2 }\n")
	method, function := hashOf("T.Run"), hashOf("Run")
	if method == function {
		t.Error("a method and a function of the same name have the same hash")
	}
	write("type T struct{}\n\n// Run runs.\nfunc (*T) Run() int { return 1 }\nfunc Run() int { return 3 }\n")
	if hashOf("T.Run") != method {
		t.Error("a comment changes the hash")
	}
	if hashOf("Run") == function {
		t.Error("another result does not change the hash")
	}
	if _, err := functionHash(dir, "Stop"); err == nil || !strings.Contains(err.Error(), "no such function") {
		t.Errorf("got %v", err)
	}
}
