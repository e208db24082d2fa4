package front

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// TestDrain: a request in flight is served to its end when the gateway stops, and
// the gateway takes no new ones.
func TestDrain(t *testing.T) {
	began, ends := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			close(began)
			<-ends
		}
		answer(w, r)
	})
	way := w.ways()[1]
	served := make(chan error, 1)
	go func() { served <- get(w.client(t, way), way.request(t.Context(), path)) }()
	<-began
	w.stop()
	for get(w.client(t, way), way.request(t.Context(), "/version")) == nil {
		t.Log("it still accepts connections")
	}
	close(ends)
	if err := <-served; err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	<-w.stopped
}

// TestAccessLog: each request has a line, with its tenant and its user, and
// without credentials and parameters.
func TestAccessLog(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	w := newWorld(t, answer, func(h *Handler) {
		h.Log = funcr.New(func(_, line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}, funcr.Options{})
	})
	for _, way := range w.ways()[1:] {
		r := way.request(t.Context(), path+"?token=parameter")
		if !way.certificate {
			r.Header.Set("Authorization", "Bearer credential")
		}
		if err := get(w.client(t, way), r); err != nil {
			t.Fatal(err)
		}
	}
	w.stop()
	<-w.stopped
	all := strings.Join(lines, "\n")
	if len(lines) != 2 || strings.Count(all, `"tenant"="red"`) != 2 || !strings.Contains(lines[0], `"user"="jane"`) {
		t.Errorf("the lines are\n%s", all)
	}
	if strings.Contains(all, "parameter") || strings.Contains(all, "credential") {
		t.Errorf("a line tells too much:\n%s", all)
	}
}
