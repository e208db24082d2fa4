package containers_test

import (
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/virtualcluster/virtualcluster/hack/release/containers"
)

// TestPushWithCredentials: credentials are those of docker's configuration
// file. Without them the error names what writes them, and has no secret.
func TestPushWithCredentials(t *testing.T) {
	const user, password = "robot", "a-secret-password"
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	archive := writeArchive(t, newIndex(t))
	for credentials, allowed := range map[string]bool{user + ":" + password: true, user + ":another-password": false} {
		dir := t.TempDir()
		t.Setenv("DOCKER_CONFIG", dir)
		config := `{"auths": {"` + host + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte(credentials)) + `"}}}`
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := containers.Push(t.Context(), host+"/team", archive)
		switch {
		case allowed && err != nil:
			t.Error(err)
		case !allowed && (err == nil || !strings.Contains(err.Error(), "docker login") || strings.Contains(err.Error(), "another-password")):
			t.Errorf("push with other credentials: %v", err)
		}
	}
}
