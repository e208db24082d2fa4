package inprocess

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
)

// userKey is that of a value in the context of the handler.
type userKey struct{}

// send sends a request to a handler inside this process.
func send(ctx context.Context, t *testing.T, handler http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+Host+"/api", nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return (&Transport{Handler: handler, Context: func(ctx context.Context) context.Context {
		return context.WithValue(ctx, userKey{}, "red")
	}}).RoundTrip(req)
}

func TestRequestInProcess(t *testing.T) {
	g := NewWithT(t)
	response, err := send(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		who, _ := r.Context().Value(userKey{}).(string)
		w.Header().Set("User", who)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "one ")
		_, _ = io.WriteString(w, "two")
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.StatusCode).To(Equal(http.StatusAccepted))
	g.Expect(response.Header.Get("User")).To(Equal("red"))
	g.Expect(io.ReadAll(response.Body)).To(BeEquivalentTo("one two"))
	g.Expect(response.Body.Close()).To(Succeed())
}

// TestHandlerPanicsInProcess: the response ends, as that of a server does.
func TestHandlerPanicsInProcess(t *testing.T) {
	g := NewWithT(t)
	response, err := send(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one")
		panic("broken")
	})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.ReadAll(response.Body)
	g.Expect(err).To(MatchError(ContainSubstring("broken")))
	g.Expect(response.Body.Close()).To(Succeed())
}

// TestNobodyReadsInProcess: the handler of a request that has ended is not kept
// by what it still writes.
func TestNobodyReadsInProcess(t *testing.T) {
	for name, end := range map[string]func(response *http.Response, cancel func()){
		"the request ends":       func(_ *http.Response, cancel func()) { cancel() },
		"the response is closed": func(response *http.Response, _ func()) { _ = response.Body.Close() },
	} {
		t.Run(name+", before the last write", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				response, err := send(ctx, t, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusOK)
					<-r.Context().Done()
					_, err := io.WriteString(w, "too late")
					ended <- err
				})
				g.Expect(err).NotTo(HaveOccurred())
				end(response, cancel)
				g.Expect(<-ended).To(MatchError(io.ErrClosedPipe))
			})
		})
	}
	t.Run("the request ends, before the first write", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				synctest.Wait()
				cancel()
			}()
			_, err := send(ctx, t, func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				_, err := io.WriteString(w, "too late")
				ended <- err
			})
			g.Expect(err).To(MatchError(context.Canceled))
			g.Expect(<-ended).To(MatchError(io.ErrClosedPipe))
		})
	})
}

// TestRequestEndsInProcess: a reader learns why there is no more to read.
func TestRequestEndsInProcess(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan struct{})
	defer close(read)
	response, err := send(ctx, t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		<-read
	})
	g.Expect(err).NotTo(HaveOccurred())
	cancel()
	_, err = io.ReadAll(response.Body)
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(response.Body.Close()).To(Succeed())
}
