package linux

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNotBuilt(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "kube-proxy", "node-policies", "images"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if missing := notBuilt(dir); !slices.Equal(missing, []string{"kubelet"}) {
		t.Errorf("missing are %v, and should be the kubelet", missing)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Setenv("PATH", "")
	err := Options{Programs: t.TempDir(), Images: "/not/there"}.check()
	if err == nil || !strings.Contains(err.Error(), "make node") || !strings.Contains(err.Error(), "/not/there") {
		t.Errorf("got %v, want what to run, and the missing images", err)
	}
}

func TestReachableNameservers(t *testing.T) {
	const text = "# nameserver 192.0.2.9\nnameserver 127.0.0.53\nnameserver\nsearch example.org\nnameserver 192.0.2.1\nnameserver ::1\n" +
		"nameserver 2001:db8::1\nnameserver here\n"
	if got, want := reachable(text), []string{"192.0.2.1", "2001:db8::1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
