// Package archive writes tar archives in which the same files give the same
// bytes.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Modes of entries.
const (
	// Program is the mode of programs and directories.
	Program = 0o755
	// Readable is the mode of all other files.
	Readable = 0o644
	// Shared is the mode of a directory for temporary files.
	Shared = 0o1777
)

// Entry is a file of an archive: one of this machine (Source), one with a given
// content, a link, or, with none of them, a directory.
type Entry struct {
	Path    string
	Source  string
	Content []byte
	Link    string
	Mode    int64
}

// Write writes entries as a tar archive. All have the same time, root as their
// owner, and the given order.
func Write(w io.Writer, modified time.Time, entries []Entry) error {
	writer := tar.NewWriter(w)
	for _, e := range entries {
		if err := e.write(writer, modified); err != nil {
			return fmt.Errorf("pack %s: %w", e.Path, err)
		}
	}
	return writer.Close()
}

// WriteGzip writes entries as a compressed tar archive.
func WriteGzip(w io.Writer, modified time.Time, entries []Entry) error {
	compressed := gzip.NewWriter(w)
	if err := Write(compressed, modified, entries); err != nil {
		return err
	}
	return compressed.Close()
}

func (e Entry) write(writer *tar.Writer, modified time.Time) error {
	header := &tar.Header{Name: e.Path, Mode: e.Mode, ModTime: modified}
	switch {
	case e.Link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.Link
		return writer.WriteHeader(header)
	case e.Source == "" && e.Content == nil:
		header.Typeflag = tar.TypeDir
		return writer.WriteHeader(header)
	}
	content, size, err := e.open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // it is only read
	header.Typeflag, header.Size = tar.TypeReg, size
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(writer, content)
	return err
}

// open returns the content of a file and its size.
func (e Entry) open() (io.ReadCloser, int64, error) {
	if e.Source == "" {
		return io.NopCloser(bytes.NewReader(e.Content)), int64(len(e.Content)), nil
	}
	file, err := os.Open(e.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// Folder returns entries for all files below a folder, in the order of their
// names.
func Folder(dir string) ([]Entry, error) {
	var entries []Entry
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		entries = append(entries, Entry{Path: filepath.ToSlash(name), Source: path, Mode: Readable})
		return err
	})
	return entries, err
}

// Extract writes the files of a tar archive into a folder, and none outside of
// it.
func Extract(r io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written to it
	reader := tar.NewReader(r)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := extract(root, header.Name, reader); err != nil {
			return fmt.Errorf("extract %s: %w", header.Name, err)
		}
	}
}

func extract(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	file, err := root.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
