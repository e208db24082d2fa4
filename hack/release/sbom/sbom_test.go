package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

var release = version.Release{Version: "v0.1.0", Time: time.Unix(1700000000, 0).UTC()}

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Path:      "example.com/project/dns/cmd/vc-dns",
		Main:      debug.Module{Path: "example.com/project/dns", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/library", Version: "v1.2.3"},
			{Path: "example.com/project", Version: "v0.0.0", Replace: &debug.Module{Path: "../", Version: "(devel)"}},
			{Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "k8s.io/api", Version: "v0.36.3"}},
		},
	}
	bom := describe(release, "vc-dns", info, sha256.Sum256(nil))
	main := bom.Metadata.Component
	if main.Name != "vc-dns" || main.Version != "v0.1.0" || main.PackageURL != "pkg:golang/example.com/project/dns@v0.1.0#cmd/vc-dns" {
		t.Errorf("the program is %+v", main)
	}
	var urls []string
	for _, c := range *bom.Components {
		urls = append(urls, c.PackageURL)
	}
	want := []string{
		"pkg:golang/std@1.26.8", "pkg:golang/example.com/library@v1.2.3",
		"pkg:golang/example.com/project@v0.1.0", "pkg:golang/k8s.io/api@v0.36.3",
	}
	if !slices.Equal(urls, want) {
		t.Errorf("components %v, want %v", urls, want)
	}
	if bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" || bom.SerialNumber != "" {
		t.Errorf("time %s, serial number %q", bom.Metadata.Timestamp, bom.SerialNumber)
	}
}

// TestDescribeOther: a program of another project has its own version.
func TestDescribeOther(t *testing.T) {
	info := &debug.BuildInfo{Path: "example.com/etcd/v3", Main: debug.Module{Path: "example.com/etcd/v3", Version: "v3.6.0"}}
	main := describe(release, "etcd", info, sha256.Sum256(nil)).Metadata.Component
	if main.Name != "etcd" || main.Version != "v3.6.0" || main.PackageURL != "pkg:golang/example.com/etcd/v3@v3.6.0" {
		t.Errorf("the program is %+v", main)
	}
}

// TestWrite reads the SBOM of the test's own program.
func TestWrite(t *testing.T) {
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := Write(&written, release, file); err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&written, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	if got := (*bom.Metadata.Component.Hashes)[0].Value; got != hex.EncodeToString(sum[:]) {
		t.Errorf("checksum %s", got)
	}
}

// TestModulesOfAProgram reads the SBOM of a program that make build has
// compiled into the folder PROGRAMS.
func TestModulesOfAProgram(t *testing.T) {
	built := os.Getenv("PROGRAMS")
	if built == "" {
		t.Skip("PROGRAMS is not set; make test-release sets it")
	}
	var written bytes.Buffer
	if err := Write(&written, release, filepath.Join(built, "vc-standalone")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"pkg:golang/github.com/virtualcluster/virtualcluster/standalone@v0.1.0#cmd/vc-standalone", "pkg:golang/k8s.io/kubernetes@v1.",
		"pkg:golang/github.com/virtualcluster/virtualcluster@v0.1.0", "pkg:golang/std@1.",
	} {
		if !strings.Contains(written.String(), want) {
			t.Errorf("the SBOM of vc-standalone lacks %s", want)
		}
	}
}

func TestWriteReportsTheFile(t *testing.T) {
	if err := Write(&bytes.Buffer{}, release, "sbom_test.go"); err == nil || !strings.Contains(err.Error(), "read the modules of sbom_test.go") {
		t.Error(err)
	}
}
