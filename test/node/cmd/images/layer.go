package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entry is a file of a layer: one of this machine (source), one with a given
// content, a link, or, with none of them, a directory.
type entry struct {
	path    string
	source  string
	content []byte
	link    string
	mode    int64
}

// newLayer packs entries. Times are left out, so that the same files make the
// same image.
func newLayer(entries []entry) (v1.Layer, error) {
	return packLayer(func(writer *tar.Writer) error {
		for _, e := range entries {
			if err := e.pack(writer); err != nil {
				return fmt.Errorf("pack %s: %w", e.path, err)
			}
		}
		return nil
	})
}

// packLayer makes a layer of what is written.
func packLayer(write func(*tar.Writer) error) (v1.Layer, error) {
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	if err := write(writer); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
}

func (e entry) pack(writer *tar.Writer) error {
	header := &tar.Header{Name: e.path, Mode: e.mode}
	switch {
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		return writer.WriteHeader(header)
	case e.source == "" && e.content == nil:
		header.Typeflag = tar.TypeDir
		return writer.WriteHeader(header)
	}
	content := e.content
	if e.source != "" {
		data, err := os.ReadFile(e.source)
		if err != nil {
			return err
		}
		content = data
	}
	header.Typeflag, header.Size = tar.TypeReg, int64(len(content))
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(content)
	return err
}
