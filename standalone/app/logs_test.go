package app

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestRedirect: what is written to a file ends up in another one, and the file
// that it was can still be written to.
func TestRedirect(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *os.File {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() }) // it is written by then
		return file
	}
	terminal, log := open("terminal"), open("log")
	was, err := redirect(terminal, log)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[*os.File]string{terminal: "to the terminal", was: "to what it was"} {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := was.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"log": "to the terminal", "terminal": "to what it was"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q (%v), want %q", name, got, err, want)
		}
	}
}

// TestProgress: a line for each step, and one that tests wait for.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	p.step("nodes", "3, simulated")
	p.ready("/data/super.kubeconfig")
	want := `^ +\d+\.\d s  nodes          3, simulated\nready: kubeconfig /data/super\.kubeconfig, after \d+\.\d s\n$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("got %q, want %s", &out, want)
	}
}
