package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/sbom"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

// Publication writes a release.
type Publication struct {
	version.Release

	Build programs.Build
	// Out is an empty folder.
	Out string
	// Registry is where the install manifest finds images. It is empty if
	// their names have no registry.
	Registry string
}

// Run compiles all programs and writes all files of the release.
func (p Publication) Run(ctx context.Context) error {
	if err := p.Build.Run(ctx, programs.Released(), programs.All()); err != nil {
		return err
	}
	if err := os.MkdirAll(p.Out, 0o750); err != nil {
		return err
	}
	if err := p.archives(); err != nil {
		return err
	}
	if err := Images(p.Release, p.Out, p.Build.Files); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{p.chart, p.manifest, p.plugin, p.components} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return Checksums(p.Out)
}

// archives writes an archive and an SBOM of each program for each platform.
func (p Publication) archives() error {
	for _, platform := range programs.Released() {
		for _, program := range programs.On(platform, programs.All()) {
			name := program.Name + "_" + p.Version + "_" + platform.String()
			file := p.Build.File(platform, program)
			entries := []archive.Entry{
				{Path: program.Name, Source: file, Mode: archive.Program},
				{Path: "LICENSE", Source: filepath.Join(p.Build.Root, "LICENSE"), Mode: archive.Readable},
			}
			if err := errors.Join(
				p.write(name+".tar.gz", func(w io.Writer) error { return archive.WriteGzip(w, p.Time, entries) }),
				p.write(name+".cdx.json", func(w io.Writer) error { return sbom.Write(w, p.Release, file) }),
			); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a file of the release.
func (p Publication) write(name string, write func(io.Writer) error) error {
	file := filepath.Join(p.Out, name)
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(write(out), out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
