package identity

import (
	"context"
	"errors"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
)

// answering is a super cluster that authenticates one token, and counts the
// reviews.
type answering struct {
	authenticationclient.TokenReviewInterface

	token   string
	reviews int
	err     error
}

func (a *answering) Create(
	_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions,
) (*authenticationv1.TokenReview, error) {
	a.reviews++
	review.Status.Authenticated = review.Spec.Token == a.token
	review.Status.User = authenticationv1.UserInfo{Username: "jane", Groups: []string{"developers"}}
	return review, a.err
}

func bearing(t *testing.T, token, from string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://gw.example.com/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RemoteAddr = from
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestReviewer(t *testing.T) {
	super := &answering{token: "good"}
	v := NewReviewer(super)
	for _, c := range []struct {
		token, of, want string
		reviews         int
	}{
		{"", "", "", 0},
		{"good", "red", "red", 0},
		{"good", "", resolve.System, 1},
		{"good", "", resolve.System, 1},
		{"bad", "", "", 2},
		{"bad", "", "", 2},
	} {
		got, err := v.Of(bearing(t, c.token, "10.0.0.1:1"), resolve.Identity{Of: c.of})
		recognized := got.SuperUser != nil && got.SuperUser.GetName() == "jane" && len(got.SuperUser.GetGroups()) == 1
		if err != nil || got.Of != c.want || super.reviews != c.reviews || recognized != (c.want == resolve.System) {
			t.Errorf("%+v: got %q (%v) after %d reviews", c, got.Of, err, super.reviews)
		}
	}
	super.err = errors.New("down")
	if _, err := v.Of(bearing(t, "another", "10.0.0.1:1"), resolve.Identity{}); err == nil {
		t.Error("a super cluster that does not answer recognizes a token, or none")
	}
	if _, known := v.known.Get("another"); known {
		t.Error("an error is remembered")
	}
}

// TestReviewerBounds: a client that tries tokens is limited, whichever port it
// uses, and others are not by it.
func TestReviewerBounds(t *testing.T) {
	super := &answering{}
	v := NewReviewer(super)
	limited := false
	for i := range 3 * reviewBurst {
		_, err := v.Of(bearing(t, string(rune('a'+i)), "[2001:db8::1]:"+string(rune('1'+i%9))), resolve.Identity{})
		limited = limited || errors.Is(err, ErrTooManyTokens)
	}
	if !limited || super.reviews > 2*reviewBurst {
		t.Errorf("%d reviews, limited %t", super.reviews, limited)
	}
	if _, err := v.Of(bearing(t, "new", "[2001:db8::2]:1"), resolve.Identity{}); !errors.Is(err, ErrTooManyTokens) {
		t.Errorf("another address of the same network: %v", err)
	}
	if _, err := v.Of(bearing(t, "new", "10.0.0.1:1"), resolve.Identity{}); err != nil {
		t.Errorf("another client: %v", err)
	}
}
