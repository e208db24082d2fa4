package version_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

func TestValidate(t *testing.T) {
	for name, message := range map[string]string{
		"v0.1.0":            "",
		"v1.22.333-rc.1":    "",
		"":                  "expected a semantic version",
		"0.1.0":             "expected a semantic version",
		"v0.1.0.2":          "expected a semantic version",
		"v01.1.0":           "expected a semantic version",
		"v0.1.0-":           "expected a semantic version",
		"v0.1.0;true":       "expected a semantic version",
		"6c06030-dirty":     "expected a semantic version",
		"v0.1":              "write it in full, as v0.1.0",
		"v0.1.0+build.5":    "leave +build.5 out",
		"v0.1.0-rc.1+dirty": "leave +dirty out",
	} {
		err := version.Validate(name)
		switch {
		case message == "" && err != nil:
			t.Errorf("%q: %v", name, err)
		case message != "" && (err == nil || !strings.Contains(err.Error(), message)):
			t.Errorf("%q: got %v, want %q", name, err, message)
		}
	}
}

// repository returns a folder with one commit of a known time.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_COMMITTER_DATE", "1700000000 +0200")
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "file"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "first"},
	} {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

func TestDescribe(t *testing.T) {
	dir := repository(t)
	for epoch, want := range map[string]string{
		"":          "2023-11-14T22:13:20Z",
		"100000000": "1973-03-03T09:46:40Z",
		"yesterday": "",
	} {
		t.Setenv("SOURCE_DATE_EPOCH", epoch)
		got, err := version.Describe(t.Context(), dir, "v0.1.0")
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH is in seconds") {
				t.Errorf("SOURCE_DATE_EPOCH=%s: %v", epoch, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.Time.Format("2006-01-02T15:04:05Z07:00") != want || got.Version != "v0.1.0" || len(got.Revision) != 40 {
			t.Errorf("SOURCE_DATE_EPOCH=%s: %+v", epoch, got)
		}
	}
}

func TestClean(t *testing.T) {
	dir := repository(t)
	if err := version.Clean(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := version.Clean(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "?? new") {
		t.Errorf("a tree with a new file: %v", err)
	}
	if err := version.Clean(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "git status") {
		t.Errorf("a folder without a repository: %v", err)
	}
}
