package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	args := []string{"v0.1.0", "https://example.com/v0.1.0/"}
	for _, platform := range []string{"linux_amd64", "darwin_arm64"} {
		file := filepath.Join(dir, "kubectl-vc_v0.1.0_"+platform+".tar.gz")
		if err := os.WriteFile(file, []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out := &bytes.Buffer{}
	if err := run(out, args); err != nil {
		t.Fatal(err)
	}
	type selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
	var got struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         selector
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err, out)
	}
	if got.Metadata.Name != "vc" || got.Spec.Version != "v0.1.0" || len(got.Spec.Platforms) != 2 {
		t.Fatal(out)
	}
	linux := got.Spec.Platforms[1]
	if diff := cmp.Diff(map[string]string{"os": "linux", "arch": "amd64"}, linux.Selector.MatchLabels); diff != "" {
		t.Error(diff)
	}
	// NIST's test vector of SHA-256.
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if linux.URI != "https://example.com/v0.1.0/kubectl-vc_v0.1.0_linux_amd64.tar.gz" || linux.SHA256 != abc || linux.Bin != "kubectl-vc" {
		t.Error(linux)
	}
}

func TestArchivesOfOtherReleases(t *testing.T) {
	for _, archive := range []string{"kubectl-vc_v0.2.0_linux_amd64.tar.gz", "kubectl-vc_v0.1.0_linux.tar.gz", "kubectl-vc_v0.1.0_linux_amd64.zip"} {
		if err := run(&bytes.Buffer{}, []string{"v0.1.0", "https://example.com", archive}); err == nil {
			t.Errorf("%s is accepted", archive)
		}
	}
}
