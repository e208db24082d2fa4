package inside

import (
	"os"
	"testing"
	"time"
)

func TestReaper(t *testing.T) {
	r := newReaper(t.Context())
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{"exit 0": "", "exit 3": "exit code 3", "kill -9 $$": "signal killed"} {
		p, err := r.start(null, "/bin/sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-p.done:
		case <-time.After(time.Minute):
			t.Fatalf("%q has not been collected", script)
		}
		if err := p.result(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q ended with %v, want %q", script, err, want)
		}
	}
	if _, err := r.start(null, "/no/such/program"); err == nil {
		t.Error("a program that does not exist was started")
	}
}
