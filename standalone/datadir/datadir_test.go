package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const ours = "v1.36.3"

func TestOpenRefuses(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
	}{
		"a directory in use": {
			prepare: func(t *testing.T, dir string) { open(t, dir) },
			want:    "is in use by another vc-standalone (pid ",
		},
		"a newer layout":     {prepare: state(`{"layout":99,"kubernetes":"v1.36.3"}`), want: "newer vc-standalone (layout 99"},
		"a newer Kubernetes": {prepare: state(`{"layout":1,"kubernetes":"v1.37.0"}`), want: "newer vc-standalone (with Kubernetes v1.37.0"},
		"a damaged state":    {prepare: state(`{"layout":`), want: "is damaged"},
		"a file": {
			prepare: func(t *testing.T, dir string) { write(t, dir, "") },
			want:    "is a file",
		},
		"a state that cannot be read": {
			prepare: func(t *testing.T, dir string) { mkdir(t, filepath.Join(dir, stateFile)) },
			want:    "cannot be used",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			test.prepare(t, dir)
			d, err := Open(dir, ours)
			if err == nil {
				_ = d.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want it to say %q", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestOpenAccepts(t *testing.T) {
	for name, content := range map[string]string{
		"the same version":       `{"layout":1,"kubernetes":"v1.36.3","port":7}`,
		"a newer patch release":  `{"layout":1,"kubernetes":"v1.36.9","port":7}`,
		"the minor before":       `{"layout":1,"kubernetes":"v1.35.1","port":7}`,
		"a build without stamps": `{"layout":1,"kubernetes":"","port":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			state(content)(t, dir)
			if port := open(t, dir).Port(); port != 7 {
				t.Errorf("port %d, want 7", port)
			}
		})
	}
}

func TestStateOutlivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	first, err := Open(dir, ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.RememberPort(4711); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if port := open(t, dir).Port(); port != 4711 {
		t.Errorf("port %d, want 4711", port)
	}
}

// TestOpenLetsGo: a directory that was refused can be locked again after a repair.
func TestOpenLetsGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	state("damaged")(t, dir)
	if _, err := Open(dir, ours); err == nil {
		t.Fatal("it was opened")
	}
	state(`{"layout":1,"port":7}`)(t, dir)
	if port := open(t, dir).Port(); port != 7 {
		t.Errorf("port %d, want 7", port)
	}
}

// TestHolder: the process that has a directory is named if it is known.
func TestHolder(t *testing.T) {
	for content, want := range map[string]string{
		"4711\n": " (pid 4711)", "": "", "somebody\n": "", strings.Repeat("1", 2*maxPID): "",
	} {
		if got := holder(strings.NewReader(content)); got != want {
			t.Errorf("%q names %q, want %q", content, got, want)
		}
	}
}

// TestOneOpens: of many that open a directory at once, one does, and the others
// say that it is in use.
func TestOneOpens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	mkdir(t, dir)
	dirs, errs := make([]*Dir, 16), make([]error, 16)
	var all sync.WaitGroup
	for i := range dirs {
		all.Go(func() { dirs[i], errs[i] = Open(dir, ours) })
	}
	all.Wait()
	opened := 0
	for i, d := range dirs {
		switch {
		case errs[i] == nil:
			opened++
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		case !strings.Contains(errs[i].Error(), "is in use by another vc-standalone"):
			t.Error(errs[i])
		}
	}
	if opened != 1 {
		t.Errorf("%d opened it", opened)
	}
	if err := open(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

// TestWriteFile: a file has its old content or its new one, and an error names
// it.
func TestWriteFile(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "data"))
	for _, content := range []string{"long content", "new"} {
		if err := d.WriteFile("file", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(d.File("file")); err != nil || string(got) != content {
			t.Errorf("it has %q (%v), want %q", got, err, content)
		}
	}
	mkdir(t, d.File("taken"))
	mkdir(t, d.File("stuck.next"))
	for _, name := range []string{"taken", "stuck", "none/file"} {
		if err := d.WriteFile(name, nil); err == nil || !strings.Contains(err.Error(), "write "+d.File(name)) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
}

// TestRememberPort: a port that is known costs no write, and one that cannot be
// written is an error.
func TestRememberPort(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "data"))
	if err := d.RememberPort(7); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.Path()); err != nil {
		t.Fatal(err)
	}
	if err := d.RememberPort(7); err != nil {
		t.Errorf("a port that is known: %v", err)
	}
	if err := d.RememberPort(8); err == nil {
		t.Error("a port that was not written is no error")
	}
}

func TestFilesArePrivate(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "data"))
	if err := d.WriteFile("secret", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{d.Path(): 0o700, d.File("secret"): 0o600, d.File("lock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: %o, want %o", path, got, want)
		}
	}
}

func open(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := Open(dir, ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func state(content string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		mkdir(t, dir)
		write(t, filepath.Join(dir, stateFile), content)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
