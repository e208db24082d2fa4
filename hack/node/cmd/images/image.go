package main

import (
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image is one image: what it is called, what is in it, and what it runs.
type image struct {
	reference string
	layers    [][]entry
	config    v1.Config
}

// write makes the archive in a directory. Its name follows from the image's.
func (i image) write(dir string) error {
	tag, err := name.NewTag(i.reference, name.StrictValidation)
	if err != nil {
		return err
	}
	built, err := i.build()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%s.tar", filepath.Base(tag.RepositoryStr()), tag.TagStr()))
	return tarball.WriteToFile(path, tag, built)
}

func (i image) build() (v1.Image, error) {
	built := empty.Image
	for _, entries := range i.layers {
		layer, err := newLayer(entries)
		if err != nil {
			return nil, err
		}
		if built, err = mutate.AppendLayers(built, layer); err != nil {
			return nil, err
		}
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config = "linux", runtime.GOARCH, i.config
	config.Config.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, i.config.Env...)
	return mutate.ConfigFile(built, config)
}
