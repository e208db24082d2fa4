package publish

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/virtualcluster/virtualcluster/hack/release/containers"
	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

var release = version.Release{Version: "v0.1.0", Time: time.Unix(1700000000, 0).UTC()}

// TestImagesOfThePrograms makes images of the programs that make build has
// compiled into the folder PROGRAMS.
func TestImagesOfThePrograms(t *testing.T) {
	built := os.Getenv("PROGRAMS")
	if built == "" {
		t.Skip("PROGRAMS is not set; make test-release sets it")
	}
	here := programs.Platform{OS: "linux", Architecture: runtime.GOARCH}
	files := func(p programs.Program) map[programs.Platform]string {
		return map[programs.Platform]string{here: filepath.Join(built, p.Name)}
	}
	dir := t.TempDir()
	if err := Images(release, dir, files); err != nil {
		t.Fatal(err)
	}
	archives, err := ImageArchives(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(archives) != len(programs.Images()) {
		t.Errorf("archives %v", archives)
	}
	for _, archive := range archives {
		read, err := containers.Read(archive)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(read.Index, validate.Fast); err != nil {
			t.Errorf("%s: %v", archive, err)
		}
		if err := read.Close(); err != nil {
			t.Error(err)
		}
		checkProgram(t, filepath.Join(built, read.Program))
	}
}

// checkProgram: a program of an image needs no libraries and starts.
func checkProgram(t *testing.T, file string) {
	t.Helper()
	program, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	if program.Section(".interp") != nil {
		t.Errorf("%s is not static", file)
	}
	if out, err := exec.CommandContext(t.Context(), file, "--help").CombinedOutput(); err != nil {
		t.Errorf("%s --help: %v: %s", file, err, out)
	}
}

// TestImageRelease: the image of a program with a tag of its own is the same in
// all releases.
func TestImageRelease(t *testing.T) {
	for _, p := range programs.Images() {
		want := release
		if p.Tag != "" {
			want = version.Release{Version: p.Tag, Time: time.Unix(0, 0).UTC()}
		}
		if got := imageRelease(release, p); got != want {
			t.Errorf("the image of %s is of %+v, want %+v", p.Name, got, want)
		}
	}
}

func TestImageArchivesOfAnEmptyFolder(t *testing.T) {
	if _, err := ImageArchives(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make images writes them") {
		t.Error(err)
	}
}

func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a", checksums} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Checksums(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, checksums))
	if err != nil {
		t.Fatal(err)
	}
	// NIST's test vector of SHA-256.
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if want := abc + "  a\n" + abc + "  b\n"; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKustomization(t *testing.T) {
	for registry, image := range map[string]string{
		"":                           "vc-dns",
		"registry.example.com/team/": "registry.example.com/team/vc-dns",
	} {
		got := kustomization(release, registry)
		if !strings.HasPrefix(got, "resources: [../config/default]\nimages:\n") ||
			!strings.Contains(got, `- {name: vc-dns, newName: `+image+`, newTag: "v0.1.0"}`) ||
			!strings.Contains(got, `- {name: etcd, newName: `+strings.Replace(image, "vc-dns", "etcd", 1)+`, newTag: "3.6.16-0"}`) {
			t.Errorf("registry %q:\n%s", registry, got)
		}
	}
}

// TestChartAndManifest: both select the images of the release, and are the same
// whenever they are made, as are the files for clusterctl.
func TestChartAndManifest(t *testing.T) {
	const chart, manifest, components = "virtualcluster-0.1.0.tgz", "install.yaml", "infrastructure-components.yaml"
	var sums []string
	for range 2 {
		p := Publication{Release: release, Build: programs.Build{Root: "../../.."}, Out: t.TempDir(), Registry: "registry.example.com/team"}
		if err := errors.Join(p.chart(t.Context()), p.manifest(t.Context()), p.components(t.Context()), Checksums(p.Out)); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(filepath.Join(p.Out, manifest))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"image: registry.example.com/team/vc-manager:v0.1.0\n", "image: registry.example.com/team/vc-syncer:v0.1.0\n",
		} {
			if !strings.Contains(string(written), want) {
				t.Errorf("%s lacks %s", manifest, want)
			}
		}
		list, err := os.ReadFile(filepath.Join(p.Out, checksums))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(list))
	}
	if sums[0] != sums[1] || !strings.Contains(sums[0], chart) || !strings.Contains(sums[0], manifest) || !strings.Contains(sums[0], components) {
		t.Errorf("the checksums are\n%s and\n%s", sums[0], sums[1])
	}
}

// TestArchivesAndPlugin writes what is made of programs: archives, SBOMs, and
// the manifest for krew. One small program stands for all.
func TestArchivesAndPlugin(t *testing.T) {
	small := filepath.Join(t.TempDir(), "small")
	if err := os.WriteFile(small+".go", []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", small, small+".go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	build := programs.Build{Root: "../../..", Out: t.TempDir()}
	for _, platform := range programs.Released() {
		for _, p := range programs.All() {
			if err := os.MkdirAll(filepath.Dir(build.File(platform, p)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(small, build.File(platform, p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := Publication{Release: release, Build: build, Out: t.TempDir()}
	if err := p.archives(); err != nil {
		t.Fatal(err)
	}
	if err := p.plugin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"kubectl-vc_v0.1.0_darwin_arm64.tar.gz":    true,
		"kubectl-vc_v0.1.0_darwin_arm64.cdx.json":  true,
		"vc-standalone_v0.1.0_linux_amd64.tar.gz":  true,
		"vc-manager_v0.1.0_linux_arm64.cdx.json":   true,
		"vc-manager_v0.1.0_darwin_arm64.tar.gz":    false,
		"vc-manager_v0.1.0_darwin_amd64.cdx.json":  false,
		"vc-standalone_v0.1.0_darwin_amd64.tar.gz": true,
	} {
		if _, err := os.Stat(filepath.Join(p.Out, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	manifest, err := os.ReadFile(filepath.Join(p.Out, "vc.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := checksum(filepath.Join(p.Out, "kubectl-vc_v0.1.0_darwin_arm64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		sum, "https://github.com/virtualcluster/virtualcluster/releases/download/v0.1.0/kubectl-vc_v0.1.0_darwin_arm64.tar.gz",
	} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("vc.yaml lacks %s", want)
		}
	}
}
