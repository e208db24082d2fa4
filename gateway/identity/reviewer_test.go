package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

// answering is a super cluster that authenticates tokens with a prefix, and counts
// the reviews.
type answering struct {
	authenticationclient.TokenReviewInterface

	prefix  string
	reviews atomic.Int32
	// holds keeps reviews until it is closed.
	holds chan struct{}
	// knowsAudiences: it verifies the audiences.
	knowsAudiences bool
	err            error
}

func (a *answering) Create(
	_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions,
) (*authenticationv1.TokenReview, error) {
	a.reviews.Add(1)
	if a.holds != nil {
		<-a.holds
	}
	review.Status.Authenticated = a.prefix != "" && strings.HasPrefix(review.Spec.Token, a.prefix)
	if a.knowsAudiences {
		review.Status.Audiences = review.Spec.Audiences
	}
	review.Status.User = authenticationv1.UserInfo{Username: "jane", Groups: []string{"developers"}}
	return review, a.err
}

func (a *answering) count() int { return int(a.reviews.Load()) }

// bearing returns a caller with a token, of a tenant or none.
func bearing(token, of string) Caller {
	return Caller{Identity: resolve.Identity{Of: of}, Token: token}
}

func TestReviewer(t *testing.T) {
	super := &answering{prefix: "good"}
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
		got, err := v.Of(t.Context(), bearing(c.token, c.of), "10.0.0.1:1")
		recognized := got.SuperUser != nil && got.SuperUser.GetName() == "jane" && len(got.SuperUser.GetGroups()) == 1
		if err != nil || got.Of != c.want || super.count() != c.reviews || recognized != (c.want == resolve.System) {
			t.Errorf("%+v: got %q (%v) after %d reviews", c, got.Of, err, super.count())
		}
	}
	super.err = errors.New("down")
	if _, err := v.Of(t.Context(), bearing("another", ""), "10.0.0.1:1"); err == nil {
		t.Error("a super cluster that does not answer recognizes a token, or none")
	}
	if v.IsStranger("another") {
		t.Error("an error is remembered")
	}
}

// TestReviewAudiences: what is known of a token for one audience says nothing of
// it for another one, nor does an apiserver that knows no audiences.
func TestReviewAudiences(t *testing.T) {
	super := &answering{prefix: "good", knowsAudiences: true}
	v := NewReviewer(super)
	review := func(audiences ...string) bool {
		who, err := v.Review(t.Context(), "good", "10.0.0.1:1", audiences...)
		if err != nil {
			t.Fatal(err)
		}
		return who != nil
	}
	for range 2 {
		if !review("a") || super.count() != 1 {
			t.Errorf("it is not known after %d reviews", super.count())
		}
	}
	super.knowsAudiences = false
	if review("b") || !review() {
		t.Error("the audience makes no difference")
	}
}

// forged sends a number of tokens which the super cluster does not authenticate,
// and returns how many it was asked about.
func forged(t *testing.T, v *Reviewer, tokens int, from string) (reviewed int) {
	t.Helper()
	for range tokens {
		switch who, err := v.Review(t.Context(), rand.Text(), from); {
		case err == nil && who == nil:
			reviewed++
		case !errors.Is(err, ErrTooManyTokens):
			t.Fatalf("%v, %v", who, err)
		}
	}
	return reviewed
}

// TestFailuresCount: a client that tries tokens is limited, whichever port it uses,
// and others are not by it; nor are tokens of its own that are authenticated.
func TestFailuresCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewReviewer(&answering{prefix: "good"})
		for i := range 2 * failureBurst {
			if i == allReviewBurst-10 {
				time.Sleep(time.Minute)
			}
			if who, err := v.Review(t.Context(), fmt.Sprint("good", i), "[2001:db8::1]:1"); who == nil {
				t.Fatalf("good token %d: %v", i, err)
			}
		}
		time.Sleep(time.Minute)
		if got := forged(t, v, 3*failureBurst, "[2001:db8::1]:2"); got != failureBurst {
			t.Errorf("%d tokens were reviewed, want %d", got, failureBurst)
		}
		if got := forged(t, v, 10, "[2001:db8::2]:1"); got != 0 {
			t.Errorf("%d tokens of another address of the same network were reviewed", got)
		}
		if got := forged(t, v, 10, "10.0.0.1:1"); got != 10 {
			t.Errorf("%d of 10 tokens of another client were reviewed", got)
		}
	})
}

// TestKnownTokens: a token that was authenticated is authenticated again, whatever
// others at the same address and at all others send. One that is so no longer is
// that of no user, but none that a tenant may get.
func TestKnownTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		super := &answering{prefix: "good"}
		v := NewReviewer(super)
		identified := func() Caller {
			t.Helper()
			got, err := v.Of(t.Context(), bearing("good", ""), "10.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		identified()
		for range 10 {
			time.Sleep(answerFor)
			for client := range 10 {
				forged(t, v, 2*failureBurst, fmt.Sprintf("10.0.0.%d:1", client))
			}
			before := super.count()
			if got := identified(); got.SuperUser == nil || super.count() != before+1 {
				t.Fatalf("the token is of %v, after %d reviews", got.SuperUser, super.count()-before)
			}
		}
		super.prefix = "better"
		time.Sleep(answerFor)
		if got := identified(); got.SuperUser != nil || got.Of != resolve.System || v.IsStranger("good") {
			t.Errorf("a token that was revoked: %+v, a stranger %t", got, v.IsStranger("good"))
		}
	})
}

// TestKnownTokensOfTenants: the same holds for the tokens of a converted tenant,
// whatever names the tenant as well.
func TestKnownTokensOfTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewReviewer(&answering{prefix: "good", knowsAudiences: true})
		for i := range 5 {
			if who, err := v.Review(t.Context(), "good", "10.0.0.1:1", converted.SuperAudience("red", "a")); who == nil {
				t.Fatalf("after %d times: %v", i, err)
			}
			time.Sleep(answerFor)
			for j := range 2 * audienceReviewBurst {
				_, err := v.Review(t.Context(), rand.Text(), fmt.Sprintf("10.0.1.%d:1", j%5), converted.SuperAudience("red", "a"))
				if limited := errors.Is(err, ErrTooManyTokens); limited != (j >= audienceReviewBurst) {
					t.Fatalf("forged token %d: %v", j, err)
				}
			}
		}
	})
}

// TestOwners: one owner of many tokens does not make the super cluster review all of
// them again and again.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		super := &answering{prefix: "good"}
		v := NewReviewer(super)
		review := func(i int) error {
			_, err := v.Review(t.Context(), fmt.Sprint("good", i), "10.0.0.1:1")
			return err
		}
		for i := range ownerReviewBurst + 100 {
			if i%allReviews == 0 {
				time.Sleep(time.Second)
			}
			if err := review(i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		before, limited := super.count(), 0
		for i := range ownerReviewBurst + 100 {
			if errors.Is(review(i), ErrTooManyTokens) {
				limited++
			}
		}
		if again := super.count() - before; again != ownerReviewBurst || limited != 100 {
			t.Errorf("%d were reviewed again, %d limited", again, limited)
		}
	})
}

// TestStrangers: of a token that was not authenticated, this is remembered for
// longer than the answer.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		super := &answering{prefix: "good"}
		v := NewReviewer(super)
		review := func() user.Info {
			t.Helper()
			who, err := v.Review(t.Context(), "other", "10.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			return who
		}
		if v.IsStranger("other") || review() != nil || !v.IsStranger("other") {
			t.Error("it is no stranger after the review, or was before")
		}
		time.Sleep(answerFor)
		if review() != nil || super.count() != 2 || !v.IsStranger("other") {
			t.Errorf("%d reviews", super.count())
		}
		time.Sleep(strangerFor + time.Second)
		if v.IsStranger("other") {
			t.Error("it is a stranger for good")
		}
		for range 10 { // it needs no place among those that are new
			forged(t, v, 2*failureBurst, "10.0.0.1:1")
			if review() != nil || !v.IsStranger("other") {
				t.Fatal("it is not reviewed again")
			}
			time.Sleep(strangerFor + time.Second)
		}
		super.prefix = "other"
		if review() == nil || v.IsStranger("other") {
			t.Error("it is a stranger when it is authenticated")
		}
	})
}

// TestReviewedOnce: a token that many requests have is reviewed once, and one of
// them that ends does not end it for the others.
func TestReviewedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		super := &answering{prefix: "good", holds: make(chan struct{})}
		v := NewReviewer(super)
		first, leave := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var left, recognized atomic.Int32
		ask := func(ctx context.Context) {
			group.Go(func() {
				who, err := v.Review(ctx, "good", "10.0.0.1:1")
				if errors.Is(err, context.Canceled) {
					left.Add(1)
				}
				if who != nil {
					recognized.Add(1)
				}
			})
		}
		ask(first)
		synctest.Wait()
		for range 50 {
			ask(t.Context())
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(super.holds)
		group.Wait()
		if super.count() != 1 || left.Load() != 1 || recognized.Load() != 50 {
			t.Errorf("%d reviews, %d recognized, %d left", super.count(), recognized.Load(), left.Load())
		}
	})
}

// TestReviewsAreShared checks that tokens for one audience, from many addresses,
// leave reviews to those for others.
func TestReviewsAreShared(t *testing.T) {
	v := NewReviewer(&answering{prefix: "good"})
	asks := func(tenant string, tokens int) (reviewed int) {
		for i := range tokens {
			_, err := v.Review(t.Context(), fmt.Sprintf("%s-%d", tenant, i), fmt.Sprintf("192.0.%d.%d:1", i/250, i%250), converted.Audience(tenant))
			if err == nil {
				reviewed++
			} else if !errors.Is(err, ErrTooManyTokens) {
				t.Fatal(err)
			}
		}
		return reviewed
	}
	if got := asks("red", 2*allReviewBurst); got < audienceReviewBurst || got >= allReviewBurst {
		t.Errorf("%d tokens for one audience were reviewed", got)
	}
	if got := asks("blue", 10); got != 10 {
		t.Errorf("%d tokens for another one were reviewed, want all", got)
	}
}
