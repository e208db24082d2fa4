// Package apitest serves what an apiserver answers as a test prescribes it, for
// code that must cope with answers that a real one gives rarely.
package apitest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Answer is one answer to a request.
type Answer struct {
	// Status is the HTTP status; zero is 200.
	Status int
	// Object is the body; nil for none.
	Object any
	// Do is called before the answer, unless it is nil.
	Do func()
}

// Server answers requests, such as "GET /api/v1/nodes/worker".
type Server struct {
	mu      sync.Mutex
	answers map[string][]Answer
	got     []string
	bodies  map[string]string
}

// Serve starts a server for the time of a test. Answers to the same request are
// given in turn, and the last one from then on; other requests are answered with
// 404. Nothing changes for those who watch.
func Serve(t *testing.T, answers map[string][]Answer) (*Server, *rest.Config) {
	t.Helper()
	s := &Server{answers: answers, bodies: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, &rest.Config{Host: server.URL}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch query := r.URL.Query(); {
	case query.Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity) // the client lists, and then watches
		return
	case query.Has("watch"):
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	body, _ := io.ReadAll(r.Body) // of a client of this process
	answer := s.next(r.Method+" "+r.URL.Path, string(body))
	if answer.Do != nil {
		answer.Do()
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.Status != 0 {
		w.WriteHeader(answer.Status)
	}
	if answer.Object != nil {
		_ = json.NewEncoder(w).Encode(answer.Object) //nolint:errchkjson // the test that sent it sees no answer
	}
}

// next takes note of a request and returns the answer to it.
func (s *Server) next(request, body string) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, request)
	s.bodies[request] = body
	answers := s.answers[request]
	switch len(answers) {
	case 0:
		return Answer{Status: http.StatusNotFound}
	case 1:
	default:
		s.answers[request] = answers[1:]
	}
	return answers[0]
}

// Requests returns the requests of a method in the order in which they came.
func (s *Server) Requests(method string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.got), func(request string) bool { return !strings.HasPrefix(request, method+" ") })
}

// Body returns the last body of a request.
func (s *Server) Body(request string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[request]
}
