package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
)

func TestWriteGzip(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(source, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries := []archive.Entry{
		{Path: "etc", Mode: archive.Program},
		{Path: "etc/empty", Content: []byte{}, Mode: archive.Readable},
		{Path: "program", Source: source, Mode: archive.Program},
		{Path: "other", Link: "program"},
	}
	modified := time.Unix(1700000000, 0)
	var first, second bytes.Buffer
	if err := errors.Join(archive.WriteGzip(&first, modified, entries), os.Chtimes(source, modified, modified)); err != nil {
		t.Fatal(err)
	}
	if err := archive.WriteGzip(&second, modified, entries); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same files make different archives")
	}
	uncompressed, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(uncompressed)
	for _, want := range []struct {
		name, content string
		kind          byte
		mode          int64
	}{
		{"etc", "", tar.TypeDir, 0o755},
		{"etc/empty", "", tar.TypeReg, 0o644},
		{"program", "program", tar.TypeReg, 0o755},
		{"other", "", tar.TypeSymlink, 0},
	} {
		got, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != want.name || string(content) != want.content || got.Typeflag != want.kind || got.Mode != want.mode ||
			got.Uid != 0 || got.Gid != 0 || !got.ModTime.Equal(modified) {
			t.Errorf("got %+v with %q, want %+v", got, content, want)
		}
	}
}

func TestExtract(t *testing.T) {
	for name, allowed := range map[string]bool{"blobs/sha256/a": true, "../outside": false, "/tmp/../../outside": false} {
		var packed bytes.Buffer
		if err := archive.Write(&packed, time.Time{}, []archive.Entry{{Path: name, Content: []byte("a"), Mode: archive.Readable}}); err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		dir := filepath.Join(parent, "a", "b")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := archive.Extract(&packed, dir); (err == nil) != allowed {
			t.Errorf("extract %s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
