package containers_test

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/virtualcluster/virtualcluster/hack/release/containers"
	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

const authorities = "etc/ssl/certs/ca-certificates.crt"

var (
	release = version.Release{
		Version: "v0.1.0", Revision: "0123456789abcdef0123456789abcdef01234567", Time: time.Unix(1700000000, 0).UTC(),
	}
	program = programs.Program{Name: "vc-manager", Description: "Reconciles VirtualClusters"}
)

// newIndex returns the index of a program with different content for each
// platform, from files that are new.
func newIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	files := map[programs.Platform]string{}
	for _, platform := range programs.Linux() {
		files[platform] = filepath.Join(t.TempDir(), program.Name)
		if err := os.WriteFile(files[platform], []byte(platform.Architecture), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	index, err := containers.New(release, program, files)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// images returns the images of an index by platform.
func images(t *testing.T, index v1.ImageIndex) map[string]v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.Image{}
	for _, m := range manifest.Manifests {
		if all[m.Platform.String()], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// contents returns the files of an image, and the modes of all entries.
func contents(t *testing.T, image v1.Image) (map[string]string, map[string]int64) {
	t.Helper()
	files, modes := map[string]string{}, map[string]int64{}
	extracted := mutate.Extract(image)
	defer func() { _ = extracted.Close() }()
	for reader := tar.NewReader(extracted); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
		if header.Typeflag != tar.TypeDir {
			files[header.Name] = string(content)
		}
	}
}

func digest(t *testing.T, index v1.ImageIndex) string {
	t.Helper()
	hash, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestNew(t *testing.T) {
	all := images(t, newIndex(t))
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Fatalf("the index has images for %v", got)
	}
	for platform, image := range all {
		file, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if file.OS+"/"+file.Architecture != platform || !file.Created.Equal(release.Time) {
			t.Errorf("the image for %s is for %s/%s, of %s", platform, file.OS, file.Architecture, file.Created)
		}
		config := file.Config
		if config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{"/vc-manager"}) || config.Cmd != nil || config.Shell != nil {
			t.Errorf("config of the image for %s: %+v", platform, config)
		}
		files, modes := contents(t, image)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{authorities, "vc-manager"}) {
			t.Errorf("the image for %s has the files %v", platform, got)
		}
		if "linux/"+files["vc-manager"] != platform {
			t.Errorf("the image for %s has the program for %s", platform, files["vc-manager"])
		}
		if modes["vc-manager"] != 0o755 || modes[authorities] != 0o644 || modes["tmp"] != 0o1777 {
			t.Errorf("modes in the image for %s: %v", platform, modes)
		}
	}
}

// TestLabels: the config of each image, its manifest and the index have the
// same labels.
func TestLabels(t *testing.T) {
	index := newIndex(t)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"org.opencontainers.image.title":       "vc-manager",
		"org.opencontainers.image.description": "Reconciles VirtualClusters",
		"org.opencontainers.image.version":     "v0.1.0",
		"org.opencontainers.image.revision":    "0123456789abcdef0123456789abcdef01234567",
		"org.opencontainers.image.created":     "2023-11-14T22:13:20Z",
		"org.opencontainers.image.source":      "https://github.com/virtualcluster/virtualcluster",
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	found := map[string]map[string]string{"index": manifest.Annotations}
	for platform, image := range images(t, index) {
		file, configError := image.ConfigFile()
		manifest, manifestError := image.Manifest()
		if err := errors.Join(configError, manifestError); err != nil {
			t.Fatal(err)
		}
		if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON {
			t.Errorf("the image for %s has the types %s and %s", platform, manifest.MediaType, manifest.Config.MediaType)
		}
		found[platform+" config"], found[platform+" manifest"] = file.Config.Labels, manifest.Annotations
	}
	for place, got := range found {
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v", place, got)
		}
	}
}

func TestAuthorities(t *testing.T) {
	files, _ := contents(t, images(t, newIndex(t))["linux/amd64"])
	rest, count := []byte(files[authorities]), 0
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA {
			t.Errorf("certificate %d is not of an authority: %v", count, err)
		}
		count++
	}
	const some = 50
	if count < some {
		t.Errorf("%d certificate authorities", count)
	}
}

func TestTheSameFilesMakeTheSameImage(t *testing.T) {
	first := digest(t, newIndex(t))
	if second := digest(t, newIndex(t)); first != second {
		t.Errorf("digests %s and %s", first, second)
	}
}

func TestAMissingProgram(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "vc-manager")
	_, err := containers.New(release, program, map[programs.Platform]string{programs.Linux()[0]: missing})
	if err == nil || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
}

// writeArchive returns the archive of an index.
func writeArchive(t *testing.T, index v1.ImageIndex) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "archive.oci.tar")
	if err := containers.Write(file, release, program, index); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestArchive(t *testing.T) {
	index := newIndex(t)
	first, second := writeArchive(t, index), writeArchive(t, index)
	a, aError := os.ReadFile(first)
	b, bError := os.ReadFile(second)
	if err := errors.Join(aError, bError); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Error("the same index makes different archives")
	}
	if !strings.Contains(string(a), `"io.containerd.image.name":"docker.io/library/vc-manager:v0.1.0"`) {
		t.Error("the archive does not name the image for containerd")
	}
	got, err := containers.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Close() }()
	if got.Program != "vc-manager" || got.Tag != "v0.1.0" || digest(t, got.Index) != digest(t, index) {
		t.Errorf("the archive has %s:%s", got.Program, got.Tag)
	}
	if err := validate.Index(got.Index); err != nil {
		t.Error(err)
	}
}

func TestReadRejectsOtherFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other.oci.tar")
	if err := os.WriteFile(file, []byte(strings.Repeat("other", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := containers.Read(file); err == nil || !strings.Contains(err.Error(), "read the image archive "+file) {
		t.Error(err)
	}
}

func TestPush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	index := newIndex(t)
	reference, err := containers.Push(t.Context(), host+"/team/", writeArchive(t, index))
	if err != nil {
		t.Fatal(err)
	}
	if want := host + "/team/vc-manager:v0.1.0@" + digest(t, index); reference != want {
		t.Errorf("pushed %s, want %s", reference, want)
	}
	tag, err := name.NewTag(host + "/team/vc-manager:v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	if digest(t, pulled) != digest(t, index) {
		t.Errorf("pulled %s", digest(t, pulled))
	}
}

func TestPushRejectsARegistryWithoutADomain(t *testing.T) {
	_, err := containers.Push(t.Context(), "team", writeArchive(t, newIndex(t)))
	if err == nil || !strings.Contains(err.Error(), "name the registry with its domain") {
		t.Error(err)
	}
}
