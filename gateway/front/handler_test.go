package front

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/virtualcluster/virtualcluster/gateway/identity"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	convertednames "github.com/virtualcluster/virtualcluster/internal/converted"
)

// superToken is the token that superCluster authenticates.
const superToken = "of-the-platform"

// superCluster authenticates one token.
type superCluster struct {
	authenticationclient.TokenReviewInterface
}

func (superCluster) Create(
	_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions,
) (*authenticationv1.TokenReview, error) {
	review.Status.Authenticated = review.Spec.Token == superToken
	review.Status.User.Username = "jane"
	return review, nil
}

// TestTokensOfSuper: a tenant whose apiserver accepts tokens that the gateway does
// not recognize gets those, and none of a user of the super cluster or of a
// converted tenant, whether it is named or the default, and whether such users use
// the gateway.
func TestTokensOfSuper(t *testing.T) {
	// The super cluster has signed it for a tenant that the gateway does not know yet.
	ofConverted := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":["`+convertednames.Audience("new")+`"]}`)) + ".e30"
	var leaked atomic.Bool
	for _, superUsers := range []bool{false, true} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			if sent := r.Header.Get("Authorization"); strings.Contains(sent, superToken) || strings.Contains(sent, ofConverted) {
				leaked.Store(true)
			}
			answer(w, r)
		}, func(h *Handler) { h.SuperUsers = superUsers })
		byToken := w.ways()[2]
		client := w.client(t, byToken)
		for _, at := range []string{path, "/tenants/red" + path, path + "?project=red"} {
			for authorization, want := range map[string]int{
				"Bearer of-the-tenant": http.StatusOK, "Basic of-the-tenant": http.StatusOK,
				"Bearer " + superToken: http.StatusForbidden, "bearer  " + superToken: http.StatusForbidden,
				"Bearer " + superToken + " more": http.StatusBadRequest, superToken: http.StatusBadRequest,
				"Bearer " + ofConverted: http.StatusForbidden,
			} {
				r := byToken.request(t.Context(), at)
				r.Header.Set("Authorization", authorization)
				response := must(client.Do(r))
				_ = response.Body.Close()
				if response.StatusCode != want {
					t.Errorf("%s at %s, users of the super cluster %t: %d, want %d", authorization, at, superUsers, response.StatusCode, want)
				}
			}
		}
	}
	if leaked.Load() {
		t.Error("the tenant has the token")
	}
}

// TestIsReviewed: the tokens of callers are not shown to the super cluster without
// need.
func TestIsReviewed(t *testing.T) {
	h := newWorld(t, answer).handler
	for _, tc := range []struct {
		tenant, token string
		superUsers    bool
		want          bool
	}{
		{"red", "a", false, true},
		{"", "a", false, true},
		{"red", "", true, false},
		{"unknown", "a", false, false},
		{"unknown", "a", true, false},
		{resolve.System, "a", true, true},
		{resolve.System, "a", false, false},
	} {
		h.SuperUsers = tc.superUsers
		if got := h.isReviewed(tc.token, resolve.Asked{Tenant: tc.tenant}); got != tc.want {
			t.Errorf("%+v: got %t", tc, got)
		}
	}
	if _, err := h.Reviewer.Of(t.Context(), identity.Caller{Token: "a"}, "10.0.0.1:1"); err != nil || h.isReviewed("a", resolve.Asked{Tenant: "red"}) {
		t.Errorf("a token that is of no user of the super cluster is reviewed again: %v", err)
	}
}
