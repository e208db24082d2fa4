package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is a clone in the current folder with one commit, and a record of
// green ones.
func repository(t *testing.T) (first string, known record) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "test"}, {"config", "user.email", "test@example.com"}} {
		if _, err := git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	return commit(t, "README.md", "1"), record(filepath.Join(t.TempDir(), "cache", "green"))
}

// write writes a file.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commit commits a file, and returns the commit.
func commit(t *testing.T, file, text string) string {
	t.Helper()
	write(t, file, text)
	for _, args := range [][]string{{"add", "."}, {"commit", "-q", "-m", file}} {
		if _, err := git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	head, err := git(t.Context(), "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(head)
}

// leftOut are the names of the areas that a run leaves out, and whether all is
// committed.
func leftOut(t *testing.T, known record) (names []string, clean bool) {
	t.Helper()
	s, err := choice(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	if clean, err = committed(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, a := range s.leftOut {
		names = append(names, a.name)
	}
	return names, clean
}

// TestWithoutARecordAllRuns, until a commit is green.
func TestWithoutARecordAllRuns(t *testing.T) {
	first, known := repository(t)
	if got, committed := leftOut(t, known); got != nil || !committed {
		t.Errorf("left out %q, committed %v", got, committed)
	}
	if err := known.add(first); err != nil {
		t.Fatal(err)
	}
	if got, committed := leftOut(t, known); len(got) != len(areas()) || !committed {
		t.Errorf("left out %q, committed %v", got, committed)
	}
	if err := os.WriteFile(string(known), []byte(first+" go1.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := leftOut(t, known); got != nil {
		t.Errorf("left out %q after another version of Go was green", got)
	}
}

// TestChangesSinceTheLastGreenCommit: those of later commits, and of the work
// tree, in which nothing is green that is not committed.
func TestChangesSinceTheLastGreenCommit(t *testing.T) {
	first, known := repository(t)
	const documents, gateway = "documents", "gateway"
	for _, green := range []string{first, strings.Repeat("0", len(first))} { // that of a clone which is gone counts for nothing
		if err := known.add(green); err != nil {
			t.Fatal(err)
		}
	}
	second := commit(t, "README.md", "2")
	got, committed := leftOut(t, known)
	if slices.Contains(got, documents) || !slices.Contains(got, gateway) || !committed {
		t.Errorf("left out %q, committed %v after a commit", got, committed)
	}
	if err := known.add(second); err != nil {
		t.Fatal(err)
	}
	write(t, "gateway/new.go", "package gateway")
	got, committed = leftOut(t, known)
	if !slices.Contains(got, documents) || slices.Contains(got, gateway) || committed {
		t.Errorf("left out %q, committed %v with a new file", got, committed)
	}
	commit(t, "gateway/new.go", "package gateway")
	if _, err := git(t.Context(), "mv", "gateway/new.go", "elsewhere.go"); err != nil {
		t.Fatal(err)
	}
	if got, _ = leftOut(t, known); got != nil {
		t.Errorf("left out %q with a file of no area", got)
	}
	if _, err := git(t.Context(), "reset", "-q", "--hard", first); err != nil {
		t.Fatal(err)
	}
	if got, _ = leftOut(t, known); !slices.Contains(got, documents) {
		t.Errorf("left out %q at an older green commit", got)
	}
}
