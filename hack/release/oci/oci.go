// Package oci builds container images from files of this machine: those of
// the releases, and those of the real node in test/node.
package oci

import (
	"bytes"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
)

// NewLayer returns a layer of entries. Times are left out, so that a layer of
// the same files is the same in all releases.
func NewLayer(entries []archive.Entry) (v1.Layer, error) {
	return PackLayer(func(w io.Writer) error { return archive.Write(w, time.Time{}, entries) })
}

// PackLayer returns a layer of the tar archive that a function writes.
func PackLayer(write func(io.Writer) error) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := write(&packed); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// Build returns an image of layers for a platform of Linux.
func Build(architecture string, created time.Time, config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err := mutate.AppendLayers(base, layers...)
	if err != nil {
		return nil, err
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", architecture, config
	file.Created = v1.Time{Time: created}
	return mutate.ConfigFile(built, file)
}
