package convert

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// reviewer answers access reviews, which are allowed from a time on.
type reviewer struct {
	allowed time.Time
	asked   int
}

// RoundTrip implements http.RoundTripper.
func (r *reviewer) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked++
	answer := `{"status":{"allowed":false}}`
	if !time.Now().Before(r.allowed) {
		answer = `{"status":{"allowed":true}}`
	}
	return &http.Response{StatusCode: http.StatusCreated, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// TestWaitForPermission: a permission is noticed at once when it comes soon, and
// one that does not come costs the super cluster few requests.
func TestWaitForPermission(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after, latest time.Duration
		most          int
		want          error
	}{
		"there already": {0, 0, 1, nil},
		"soon":          {30 * time.Millisecond, 60 * time.Millisecond, 4, nil},
		"late":          {5 * time.Second, 6 * time.Second, 25, nil},
		"never":         {time.Hour, permissionTimeout, 60, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				super := &reviewer{allowed: begun.Add(tt.after)}
				c := &call{Handler: &Handler{Fenced: super, SuperURL: &url.URL{Scheme: "https", Host: "super"}}}
				err := c.waitForPermission(t.Context(), &authorizationv1.ResourceAttributes{Verb: verbCreate, Resource: "pods"})
				if !errors.Is(err, tt.want) {
					t.Errorf("got error %v, want %v", err, tt.want)
				}
				if took := time.Since(begun); took > tt.latest {
					t.Errorf("it took %v", took)
				}
				if super.asked > tt.most {
					t.Errorf("%d requests", super.asked)
				}
			})
		})
	}
}
