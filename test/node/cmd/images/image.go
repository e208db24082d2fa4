package main

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
	"github.com/virtualcluster/virtualcluster/hack/release/oci"
)

// image is one image: what it is called, what is in it, and what it runs.
type image struct {
	reference string
	// base is below the layers, and may be that of several images.
	base   []v1.Layer
	layers [][]archive.Entry
	config v1.Config
}

// file is the name of the image's archive.
func (i image) file() string { return strings.ReplaceAll(path.Base(i.reference), ":", "-") + ".tar" }

// writeArchive writes images into one archive, in which a layer of several
// images is once.
func writeArchive(file string, images ...image) error {
	archive := map[name.Tag]v1.Image{}
	for _, i := range images {
		tag, err := name.NewTag(i.reference, name.StrictValidation)
		if err != nil {
			return err
		}
		if archive[tag], err = i.build(); err != nil {
			return fmt.Errorf("image %s: %w", i.reference, err)
		}
	}
	return tarball.MultiWriteToFile(file, archive)
}

func (i image) build() (v1.Image, error) {
	layers := slices.Clone(i.base)
	for _, entries := range i.layers {
		layer, err := oci.NewLayer(entries)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	config := i.config
	config.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, config.Env...)
	return oci.Build(runtime.GOARCH, time.Time{}, config, layers...)
}
