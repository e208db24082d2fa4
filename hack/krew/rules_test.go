package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin has all fields that krew knows of a manifest.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
	Files  []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"files"`
}

// TestRulesOfKrew: krew accepts the manifest. Its validation is in an internal
// package, and its program validate-krew-manifest needs a client-go of 2019, so
// that the rules are repeated here.
func TestRulesOfKrew(t *testing.T) {
	dir := t.TempDir()
	args := []string{"v0.1.0-rc.1", "https://example.com/v0.1.0-rc.1"}
	for _, p := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		file := filepath.Join(dir, "kubectl-vc_v0.1.0-rc.1_"+p+".tar.gz")
		if err := os.WriteFile(file, []byte(p), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out := &bytes.Buffer{}
	if err := run(out, args); err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(out.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	for name, fine := range map[string]bool{
		"apiVersion":        p.APIVersion == "krew.googlecontainertools.github.com/v1alpha2",
		"kind":              p.Kind == "Plugin",
		"name":              regexp.MustCompile(`^[\w-]+$`).MatchString(p.Metadata.Name),
		"version":           regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(p.Spec.Version),
		"short description": p.Spec.ShortDescription != "" && !strings.ContainsAny(p.Spec.ShortDescription, "\r\n"),
		// The index of krew asks for these, too.
		"brief":      len(p.Spec.ShortDescription) <= 50 && !strings.HasSuffix(p.Spec.ShortDescription, "."),
		"homepage":   strings.HasPrefix(p.Spec.Homepage, "https://"),
		"described":  p.Spec.Description != "",
		"no kubectl": !strings.Contains(p.Metadata.Name, "kubectl"),
	} {
		if !fine {
			t.Errorf("%s of\n%s", name, out)
		}
	}
	if len(p.Spec.Platforms) != len(args)-2 {
		t.Fatalf("%d platforms", len(p.Spec.Platforms))
	}
	var selectors []string
	for _, of := range p.Spec.Platforms {
		selectors = append(selectors, checkPlatform(t, of))
	}
	slices.Sort(selectors)
	if len(slices.Compact(selectors)) != len(p.Spec.Platforms) {
		t.Errorf("platforms overlap: %q", selectors)
	}
}

// checkPlatform checks the part of a platform, and returns what it selects.
func checkPlatform(t *testing.T, p platform) string {
	t.Helper()
	selector := p.Selector.MatchLabels
	if len(selector) != 2 || selector["os"] == "" || selector["arch"] == "" {
		t.Errorf("the selector has other keys than os and arch: %v", selector)
	}
	if !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(p.SHA256) || !strings.HasPrefix(p.URI, "https://") {
		t.Errorf("%s, %s", p.URI, p.SHA256)
	}
	moved := map[string]bool{}
	for _, f := range p.Files {
		if f.From == "" || f.To != "." {
			t.Errorf("file from %q to %q", f.From, f.To)
		}
		moved[f.From] = true
	}
	if !moved[p.Bin] || !moved["LICENSE"] {
		t.Errorf("of the archive, %v are installed, not %s and the license", moved, p.Bin)
	}
	return selector["os"] + "/" + selector["arch"]
}
