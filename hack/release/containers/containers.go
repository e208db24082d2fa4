// Package containers makes the container images of programs: one index for each
// program, with an image for each platform.
package containers

import (
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
	"github.com/virtualcluster/virtualcluster/hack/release/oci"
	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

const (
	// user is numeric, so that the kubelet can verify runAsNonRoot.
	user = "65532:65532"
	// authorities is where Go's crypto/x509 looks first.
	authorities = "etc/ssl/certs/ca-certificates.crt"
	titleLabel  = "org.opencontainers.image.title"
)

// New returns the index of a program's images, from its files by platform.
func New(release version.Release, p programs.Program, files map[programs.Platform]string) (v1.ImageIndex, error) {
	base, err := baseLayer()
	if err != nil {
		return nil, err
	}
	labels := labels(release, p)
	index := mutate.Annotations(empty.Index, labels).(v1.ImageIndex)
	config := v1.Config{User: user, Entrypoint: []string{"/" + p.Name}, WorkingDir: "/", Env: []string{"PATH=/"}, Labels: labels}
	for _, platform := range slices.SortedFunc(maps.Keys(files), programs.Platform.Compare) {
		program, err := oci.NewLayer([]archive.Entry{{Path: p.Name, Source: files[platform], Mode: archive.Program}})
		if err != nil {
			return nil, err
		}
		built, err := oci.Build(platform.Architecture, release.Time, config, base, program)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        mutate.Annotations(built, labels).(v1.Image),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: platform.OS, Architecture: platform.Architecture}},
		})
	}
	return index, nil
}

// labels are those of the OCI image specification.
func labels(release version.Release, p programs.Program) map[string]string {
	all := map[string]string{
		titleLabel:                             p.Name,
		"org.opencontainers.image.description": p.Description,
		"org.opencontainers.image.version":     release.Version,
		"org.opencontainers.image.created":     release.Time.Format(time.RFC3339),
		"org.opencontainers.image.source":      version.Source,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	if release.Revision != "" {
		all["org.opencontainers.image.revision"] = release.Revision
	}
	return all
}

// baseLayer is what all images share: an empty directory for temporary files,
// and the public certificate authorities.
func baseLayer() (v1.Layer, error) {
	layer, err := oci.NewLayer([]archive.Entry{
		{Path: "etc", Mode: archive.Program},
		{Path: "etc/ssl", Mode: archive.Program},
		{Path: "etc/ssl/certs", Mode: archive.Program},
		{Path: authorities, Content: publicAuthorities(), Mode: archive.Readable},
		{Path: "tmp", Mode: archive.Shared},
	})
	if err != nil {
		return nil, fmt.Errorf("make the layer of all images: %w", err)
	}
	return layer, nil
}

// publicAuthorities returns the authorities of Mozilla's list, from a module of
// Go. It omits those with a constraint, which the file cannot express.
func publicAuthorities() []byte {
	var file []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			file = append(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return file
}
