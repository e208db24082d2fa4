// Package datadir keeps the directory in which vc-standalone lives: one process
// at a time, and none that is older than what is in it.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is a data directory that belongs to this process until Close.
type Dir struct {
	path  string
	lock  *os.File
	state State
}

// Open takes the directory for this process, and makes it if there is none. The
// running version of Kubernetes, such as v1.36.3, decides whether what is in
// the directory can be used.
func Open(path, kubernetes string) (*Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := makePrivate(abs); err != nil {
		return nil, err
	}
	d := &Dir{path: abs}
	if d.lock, err = takeLock(d.File("lock"), abs); err != nil {
		return nil, err
	}
	if err := d.load(kubernetes); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// makePrivate makes the directory unless it exists: it holds the keys of every tenant.
func makePrivate(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("make data directory: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("data directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("data directory %s is a file: choose another one with --data-dir", path)
	}
	return nil
}

// File is the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// Path is the directory's absolute path.
func (d *Dir) Path() string { return d.path }

// Close gives the directory back.
func (d *Dir) Close() error {
	if err := d.lock.Close(); err != nil {
		return fmt.Errorf("release data directory %s: %w", d.path, err)
	}
	return nil
}

// WriteFile replaces a file of the directory by one that only its owner can
// read. Readers see the old one or the new.
func (d *Dir) WriteFile(name string, data []byte) error {
	path := d.File(name)
	next := path + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
