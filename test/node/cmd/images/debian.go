package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtualcluster/virtualcluster/hack/release/oci"
)

// debian makes a layer of packages and all that they need, as if they were
// unpacked into an empty directory. Nothing is installed on this machine.
func debian(ctx context.Context, packages ...string) (v1.Layer, error) {
	dir, err := os.MkdirTemp("", "packages-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the system's directory for temporary files
	if err := download(ctx, dir, packages); err != nil {
		return nil, fmt.Errorf("fetch %s: %w", strings.Join(packages, ", "), err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return nil, err
	}
	return oci.PackLayer(func(w io.Writer) error {
		writer := tar.NewWriter(w)
		directories := map[string]bool{}
		for _, file := range files {
			if err := unpack(ctx, writer, directories, file); err != nil {
				return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
			}
		}
		return writer.Close()
	})
}

// download fetches packages as apt-get does for a machine that has none yet.
func download(ctx context.Context, dir string, packages []string) error {
	status := filepath.Join(dir, "status")
	if err := errors.Join(os.WriteFile(status, nil, 0o600), os.Mkdir(filepath.Join(dir, "partial"), 0o700)); err != nil {
		return err
	}
	args := []string{
		"-q", "-y", "--download-only", "--no-install-recommends",
		"-o", "Dir::State::status=" + status, "-o", "Dir::Cache::archives=" + dir, "-o", "Debug::NoLocking=1",
		"-o", "APT::Sandbox::User=", "install",
	}
	out, err := exec.CommandContext(ctx, "apt-get", append(args, packages...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w (is apt-get update needed?): %s", err, out)
	}
	return nil
}

// unpack copies the files of a package. Directories are those of the packages
// before it.
func unpack(ctx context.Context, writer *tar.Writer, directories map[string]bool, file string) error {
	command := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	copied := copyEntries(writer, directories, tar.NewReader(out))
	_, drained := io.Copy(io.Discard, out)
	return errors.Join(copied, drained, command.Wait())
}

func copyEntries(writer *tar.Writer, directories map[string]bool, reader *tar.Reader) error {
	for {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case strings.HasPrefix(header.Name, "./usr/share/doc/"), strings.HasPrefix(header.Name, "./usr/share/man/"), directories[header.Name]:
			continue
		}
		directories[header.Name] = header.Typeflag == tar.TypeDir
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(writer, reader); err != nil {
			return err
		}
	}
}
