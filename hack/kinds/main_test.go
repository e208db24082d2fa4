package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

const root = "../.."

// TestFilesAreUpToDate checks that the files match the table of kinds.
func TestFilesAreUpToDate(t *testing.T) {
	table, err := app.Table()
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(root, table)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s does not list the kinds that are synced: run make generate", name)
		}
	}
}

// TestKindsHaveSummaries checks that each kind has a summary for README.md.
func TestKindsHaveSummaries(t *testing.T) {
	table, err := app.Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range table {
		if k.Summary == "" {
			t.Errorf("syncer/resources/%s.go: the declaration of %s lacks Summary", strings.ToLower(k.Name), k.Name)
		}
	}
}

// TestOneMoreKind adds a kind to the table, and expects it in each file.
func TestOneMoreKind(t *testing.T) {
	table, err := app.Table()
	if err != nil {
		t.Fatal(err)
	}
	more, err := kinds.Table([]kinds.Flow{kinds.Down[*corev1.PodTemplate]{
		Name: "PodTemplate", Object: &corev1.PodTemplate{}, Summary: "down, for a test", Optional: true, OnDemand: true,
	}}, scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(root, append(table, more...))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		types: {
			"PersistentVolumeClaim;PodTemplate\ntype QuotaKind", "'count/persistentvolumeclaims', 'count/podtemplates']",
			"DeviceClass;PodTemplate\ntype OptionalKind", "ResourceClaimTemplate and PodTemplate\"",
		},
		"README.md":                        {"| PodTemplate | down, for a test |"},
		"docs/admins/sync.md":              {"`ResourceClaimTemplate`, `PodTemplate` | `Referenced`, `All`, `Off` |"},
		"docs/admins/limits-and-quotas.md": {"`count/podtemplates`\n"},
		"docs/admins/validation-rules.md":  {"`PodTemplate`\n"},
	} {
		for _, text := range want {
			if !strings.Contains(string(files[name]), text) {
				t.Errorf("%s lacks %q", name, text)
			}
		}
	}
}

// TestPartsHaveComments checks that a document without the comments is an
// error.
func TestPartsHaveComments(t *testing.T) {
	for _, p := range parts() {
		if _, err := p.replace([]byte("# Title\n"+p.begin()), nil); err == nil || !strings.Contains(err.Error(), p.file) {
			t.Errorf("%s: got %v", p.file, err)
		}
	}
}
