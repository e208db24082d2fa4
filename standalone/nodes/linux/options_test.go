package linux

import (
	"path/filepath"
	"testing"
)

// TestLibrary: what the node sees in /var/lib is below its directory here.
func TestLibrary(t *testing.T) {
	o := Options{Dir: filepath.Join("data", "node")}
	if got, want := o.Library("volumes"), filepath.Join("data", "node", "var", "lib", "volumes"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
