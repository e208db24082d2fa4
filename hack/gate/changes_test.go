package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goVersion is that of the runs in these tests.
const goVersion = "go1.2"

// repository is a clone in the current folder with one commit, and specs.
func repository(t *testing.T) (first string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "test"}, {"config", "user.email", "test@example.com"}} {
		if _, err := git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "test/integration/helpers_test.go", "package integration\n\nfunc share() {}\n")
	write(t, "test/integration/gateway_test.go", "package integration\n\nfunc use() { share() }\n")
	return commit(t, "README.md", "1")
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

// leftOut are the names of the areas that a run leaves out after others, the last
// of which is the first.
func leftOut(t *testing.T, runs ...verdict) (names []string) {
	t.Helper()
	s, err := choice(t.Context(), areas(), runs, goVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.leftOut {
		names = append(names, a.name)
	}
	return names
}

// ran is a run of a commit which leaves areas open.
func ran(commit string, open ...string) verdict {
	return verdict{Commit: commit, Go: goVersion, Open: open}
}

// TestWithoutAGreenRunAllRuns, and what is not committed is no commit's verdict.
func TestWithoutAGreenRunAllRuns(t *testing.T) {
	first := repository(t)
	if got := leftOut(t); got != nil {
		t.Errorf("left out %q", got)
	}
	if got := leftOut(t, ran(first)); len(got) != len(areas()) {
		t.Errorf("left out %q", got)
	}
	if got := leftOut(t, verdict{Commit: first, Go: "go1.1"}, ran("")); got != nil {
		t.Errorf("left out %q after another version of Go was green", got)
	}
}

// TestChangesSinceTheLastGreenCommit: those of later commits, and of the work
// tree.
func TestChangesSinceTheLastGreenCommit(t *testing.T) {
	first := repository(t)
	const documents, gateway = "documents", "gateway"
	green := []verdict{ran(strings.Repeat("0", len(first))), ran(first)} // that of a clone which is gone counts for nothing
	second := commit(t, "README.md", "2")
	if got := leftOut(t, green...); slices.Contains(got, documents) || !slices.Contains(got, gateway) {
		t.Errorf("left out %q after a commit", got)
	}
	green = append([]verdict{ran(second)}, green...)
	write(t, "gateway/new.go", "package gateway")
	if got := leftOut(t, green...); !slices.Contains(got, documents) || slices.Contains(got, gateway) {
		t.Errorf("left out %q with a new file", got)
	}
	commit(t, "gateway/new.go", "package gateway")
	write(t, "test/integration/helpers_test.go", "package integration\n\nfunc share() { share() }\n")
	if got := leftOut(t, ran("HEAD")); !slices.Contains(got, documents) || slices.Contains(got, gateway) {
		t.Errorf("left out %q with a change of what specs use", got)
	}
	if _, err := git(t.Context(), "mv", "gateway/new.go", "elsewhere.go"); err != nil {
		t.Fatal(err)
	}
	if got := leftOut(t, green...); got != nil {
		t.Errorf("left out %q with a file of no area", got)
	}
	if _, err := git(t.Context(), "reset", "-q", "--hard", first); err != nil {
		t.Fatal(err)
	}
	if got := leftOut(t, green...); !slices.Contains(got, documents) {
		t.Errorf("left out %q at an older green commit", got)
	}
}

// TestWhatWasRedRunsAgain: after a run that left areas open, these count from an
// older one, and others from it.
func TestWhatWasRedRunsAgain(t *testing.T) {
	first := repository(t)
	const documents, gateway, release = "documents", "gateway", "release"
	second := commit(t, "gateway/a.go", "package gateway")
	runs := []verdict{ran(second, gateway, "converted tenants", release), ran(first)}
	got := leftOut(t, runs...)
	if slices.Contains(got, gateway) || !slices.Contains(got, documents) || !slices.Contains(got, release) {
		t.Errorf("left out %q of the same commit", got)
	}
	commit(t, "docs/metrics.md", "# Metrics")
	if got = leftOut(t, runs...); slices.Contains(got, gateway) || slices.Contains(got, documents) || !slices.Contains(got, "hosts") {
		t.Errorf("left out %q after the repair", got)
	}
	if got = leftOut(t, ran(second, gateway)); slices.Contains(got, gateway) || !slices.Contains(got, release) {
		t.Errorf("left out %q without an older run", got)
	}
}

// TestCommitted tells what is not.
func TestCommitted(t *testing.T) {
	repository(t)
	for _, want := range []bool{true, false} {
		if got, err := committed(t.Context()); got != want || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
		write(t, "new.go", "package a")
	}
}
