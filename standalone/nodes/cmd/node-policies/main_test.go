//go:build linux

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/policies"
)

const runtime = "unix:///run/containerd/containerd.sock"

// TestRunNeeds: what is missing or wrong is said before anything is enforced.
func TestRunNeeds(t *testing.T) {
	none, wrong := filepath.Join(t.TempDir(), "none"), kubeconfig(t, "not a URL")
	for name, c := range map[string]struct{ kubeconfig, runtime, want string }{
		"no kubeconfig":              {"", runtime, "--kubeconfig and --runtime are required"},
		"no runtime":                 {wrong, "", "--kubeconfig and --runtime are required"},
		"a kubeconfig that is gone":  {none, runtime, none},
		"a kubeconfig of no cluster": {wrong, runtime, "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), c.kubeconfig, policies.Options{Runtime: c.runtime, Log: logr.Discard()})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestRunStops: it can be stopped while it waits for an apiserver that does not
// let it read anything.
func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		cancel()
	}))
	defer server.Close()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- run(ctx, kubeconfig(t, server.URL), policies.Options{Runtime: runtime, Log: logr.Discard()})
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it does not stop")
	}
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "clusters: [{name: c, cluster: {server: '" + server + "'}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
