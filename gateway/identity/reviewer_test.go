package identity

import (
	"context"
	"errors"
	"fmt"
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
	// knowsAudiences: it verifies the audiences.
	knowsAudiences bool
	err            error
}

func (a *answering) Create(
	_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions,
) (*authenticationv1.TokenReview, error) {
	a.reviews++
	review.Status.Authenticated = review.Spec.Token == a.token
	if a.knowsAudiences {
		review.Status.Audiences = review.Spec.Audiences
	}
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

// TestReviewAudiences: what is known of a token for one audience says nothing of
// it for another one, nor does an apiserver that knows no audiences.
func TestReviewAudiences(t *testing.T) {
	super := &answering{token: "good", knowsAudiences: true}
	v := NewReviewer(super)
	review := func(audiences ...string) bool {
		who, err := v.Review(t.Context(), "good", "10.0.0.1:1", audiences...)
		if err != nil {
			t.Fatal(err)
		}
		return who != nil
	}
	for range 2 {
		if !review("a") || super.reviews != 1 {
			t.Errorf("it is not known after %d reviews", super.reviews)
		}
	}
	super.knowsAudiences = false
	if review("b") || !review() {
		t.Error("the audience makes no difference")
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

// TestReviewsAreShared checks that tokens for one audience, from many addresses,
// leave reviews to those for others.
func TestReviewsAreShared(t *testing.T) {
	v := NewReviewer(&answering{token: "good"})
	asks := func(audience string, tokens int) (reviewed int) {
		for i := range tokens {
			_, err := v.Review(t.Context(), fmt.Sprintf("%s-%d", audience, i), fmt.Sprintf("192.0.%d.%d:1", i/250, i%250), audience)
			if err == nil {
				reviewed++
			} else if !errors.Is(err, ErrTooManyTokens) {
				t.Fatal(err)
			}
		}
		return reviewed
	}
	if got := asks("red", 400); got < audienceReviewBurst || got >= allReviewBurst {
		t.Errorf("%d tokens for one audience were reviewed", got)
	}
	if got := asks("blue", 10); got != 10 {
		t.Errorf("%d tokens for another one were reviewed, want all", got)
	}
}
