package containers

import (
	"errors"
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

// Annotations by which programs that load an archive name the image.
const (
	tagAnnotation  = "org.opencontainers.image.ref.name"
	nameAnnotation = "io.containerd.image.name"
	// unqualified is the prefix that Kubernetes gives an image without a
	// registry.
	unqualified = "docker.io/library/"
)

// Write writes the index of a program as an OCI archive.
func Write(file string, release version.Release, p programs.Program, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	outer := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
		tagAnnotation:  release.Version,
		nameAnnotation: unqualified + p.Name + ":" + release.Version,
	}}})
	if _, err := layout.Write(dir, outer); err != nil {
		return err
	}
	entries, err := archive.Folder(dir)
	if err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(archive.Write(out, release.Time, entries), out.Close())
}

// Archived is an index that was read from an archive. Its blobs are in a folder
// until it is closed.
type Archived struct {
	Index v1.ImageIndex
	// Program is the name of the program, and Tag the version.
	Program, Tag string
	dir          string
}

// Close removes the folder.
func (a Archived) Close() error { return os.RemoveAll(a.dir) }

// Read reads an archive.
func Read(file string) (Archived, error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return Archived{}, err
	}
	a, err := open(file, dir)
	if err != nil {
		return Archived{}, fmt.Errorf("read the image archive %s: %w", file, errors.Join(err, os.RemoveAll(dir)))
	}
	return a, nil
}

// open extracts an archive into a folder and returns its only index.
func open(file, dir string) (Archived, error) {
	in, err := os.Open(file)
	if err != nil {
		return Archived{}, err
	}
	defer func() { _ = in.Close() }() // it is only read
	if err := archive.Extract(in, dir); err != nil {
		return Archived{}, err
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return Archived{}, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return Archived{}, err
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations[tagAnnotation] == "" {
		return Archived{}, errors.New("expected one image with a tag; make images writes such archives")
	}
	only := manifest.Manifests[0]
	index, err := outer.ImageIndex(only.Digest)
	if err != nil {
		return Archived{}, err
	}
	if manifest, err = index.IndexManifest(); err != nil {
		return Archived{}, err
	}
	return Archived{
		Index: index, Program: manifest.Annotations[titleLabel], Tag: only.Annotations[tagAnnotation], dir: dir,
	}, nil
}
