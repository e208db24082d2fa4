package hosted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Keyring stores the keys and certificates of control planes.
type Keyring interface {
	// Open returns those of a control plane. It has no files if it has never run.
	Open(ctx context.Context, name string) (Keys, error)
	// Delete deletes those of a control plane. It is not an error if there are
	// none.
	Delete(ctx context.Context, name string) error
}

// Keys are the keys and certificates of a control plane, as files.
type Keys interface {
	// Read returns the content of a file; fs.ErrNotExist if there is none.
	Read(file string) ([]byte, error)
	// Write creates a file, or replaces it.
	Write(file string, data []byte) error
	// Commit stores the files that were written, if Write has not. It returns
	// ErrKeysChanged, and stores nothing, if they were changed since Open.
	Commit(ctx context.Context) error
	// Locate returns where a file is, for errors.
	Locate(file string) string
}

// ErrKeysChanged is returned if another host has changed keys in between: they
// have to be opened again.
var ErrKeysChanged = errors.New("the keys were changed by another host")

// directories is the keyring in a data directory, with one directory for each
// control plane.
type directories struct{ dir string }

// Open implements Keyring.
func (d directories) Open(_ context.Context, name string) (Keys, error) {
	return directory(filepath.Join(d.dir, name, "pki")), nil
}

// Delete implements Keyring.
func (d directories) Delete(_ context.Context, name string) error {
	return wrapf(os.RemoveAll(filepath.Join(d.dir, name)), "remove the PKI of control plane %q", name)
}

// directory has keys as files, for the owner only.
type directory string

// Read implements Keys.
func (d directory) Read(file string) ([]byte, error) { return os.ReadFile(d.Locate(file)) }

// Write implements Keys. It is atomic and durable.
func (d directory) Write(file string, data []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("create the directory of the PKI: %w", err)
	}
	return writeFile(d.Locate(file), data)
}

// Commit implements Keys.
func (directory) Commit(context.Context) error { return nil }

// Locate implements Keys.
func (d directory) Locate(file string) string { return filepath.Join(string(d), file) }

// readOrMake returns the content of a file, and creates it first if necessary.
// It never replaces a file.
func readOrMake(keys Keys, file string, create func() ([]byte, error)) ([]byte, error) {
	data, err := keys.Read(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, wrapf(err, "read %s", keys.Locate(file))
	}
	if data, err = create(); err != nil {
		return nil, fmt.Errorf("create %s: %w", keys.Locate(file), err)
	}
	return data, keys.Write(file, data)
}

// ensureFile writes a file unless it has the content.
func ensureFile(keys Keys, file string, data []byte) error {
	if have, err := keys.Read(file); err == nil && bytes.Equal(have, data) {
		return nil
	}
	return keys.Write(file, data)
}
