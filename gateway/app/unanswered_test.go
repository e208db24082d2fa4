package app

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// silent is a super cluster that does not answer.
type silent struct{}

var errReset = errors.New("connection reset by peer")

func (silent) RoundTrip(*http.Request) (*http.Response, error) { return nil, errReset }

func TestUnanswered(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		want int
	}{
		"a request that fails":             {t.Context(), 1},
		"a request whose client has ended": {gone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			lines := 0
			log := funcr.New(func(_, _ string) { lines++ }, funcr.Options{})
			r, err := http.NewRequestWithContext(test.ctx, http.MethodGet, "https://super/api/v1/pods?watch=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := unanswered{silent{}, log}.RoundTrip(r)
			if response != nil {
				_ = response.Body.Close()
			}
			if !errors.Is(err, errReset) || lines != test.want {
				t.Errorf("error %v, %d lines of log; want %d", err, lines, test.want)
			}
		})
	}
}
