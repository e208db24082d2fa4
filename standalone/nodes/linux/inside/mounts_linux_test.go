package inside

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// TestKubeconfig: each program of the node reaches the super cluster under the
// name in its certificate, and verifies it.
func TestKubeconfig(t *testing.T) {
	settings := &Settings{Server: "https://198.19.0.1:6443", ServerName: "super.example", CA: []byte("authority")}
	data, err := kubeconfig(settings, pki.KeyPair{CertPEM: []byte("certificate"), KeyPEM: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]string{
		"server":      {config.Host, settings.Server},
		"server name": {config.ServerName, settings.ServerName},
		"authority":   {string(config.CAData), "authority"},
		"certificate": {string(config.CertData), "certificate"},
		"key":         {string(config.KeyData), "key"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("the %s is %q, want %q", what, pair[0], pair[1])
		}
	}
	if config.Insecure {
		t.Error("the server is not verified")
	}
}

// TestOpenAll: directories of this machine are opened before they are hidden,
// those that are not given are left out, and none that is missing goes unnoticed.
func TestOpenAll(t *testing.T) {
	state, bin := t.TempDir(), t.TempDir()
	opened, err := openAll(&Settings{Programs: bin, State: state})
	defer closeAll(t, &opened)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]bool{}
	for _, dir := range opened {
		at[dir.target] = true
	}
	if len(at) != 2 || !at[programs] || !at["/var"] {
		t.Errorf("opened are %v", at)
	}
	missing := filepath.Join(state, "missing")
	some, err := openAll(&Settings{Programs: bin, State: missing})
	defer closeAll(t, &some)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that %s does not exist", err, missing)
	}
	file := filepath.Join(state, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	others, err := openAll(&Settings{State: file})
	defer closeAll(t, &others)
	if err == nil {
		t.Error("a file was opened as a directory")
	}
}

func closeAll(t *testing.T, dirs *[]shown) {
	t.Helper()
	for _, dir := range *dirs {
		if err := unix.Close(dir.fd); err != nil {
			t.Error(err)
		}
	}
}
