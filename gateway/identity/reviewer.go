package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/virtualcluster/virtualcluster/gateway/pace"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
)

const (
	// answerFor is how long an answer of the super cluster is kept. A token that was
	// revoked leads to projects for that time; the super cluster itself
	// authenticates each request.
	answerFor = 10 * time.Second
	// answers and addresses are how many of them are kept.
	answers, addresses = 4096, 4096
	// A client sends reviews tokens a second that are not known, and all of them
	// allReviews: what they do not use, the next ones may.
	reviews, reviewBurst       = 5, 20
	allReviews, allReviewBurst = 100, 200
	addressFor                 = time.Hour
	reviewTimeout              = 10 * time.Second
	networkBits                = 64
	ipv6Bits                   = 128
)

// ErrTooManyTokens is a client that sends too many tokens which are of no tenant.
var ErrTooManyTokens = errors.New("too many tokens that the gateway does not know: wait a moment")

// Reviewer recognizes the tokens of the super cluster. What clients can make it
// ask and remember is bounded.
type Reviewer struct {
	client authenticationclient.TokenReviewInterface
	// known has the user as whom the super cluster authenticates a token, nil for
	// none, by the hash of the token.
	known *cache.LRUExpireCache
	// clients is the pace of each address, and all that of all together.
	clients *pace.Pace
	all     flowcontrol.RateLimiter
}

// NewReviewer makes a reviewer.
func NewReviewer(client authenticationclient.TokenReviewInterface) *Reviewer {
	return &Reviewer{
		client: client, known: cache.NewLRUExpireCache(answers), clients: pace.New(reviews, reviewBurst, addresses, addressFor),
		all: flowcontrol.NewTokenBucketRateLimiter(allReviews, allReviewBurst),
	}
}

// Of returns the identity of a caller whose token is of no tenant: that of the
// super cluster, if the super cluster authenticates it.
func (v *Reviewer) Of(r *http.Request, caller resolve.Identity) (resolve.Identity, error) {
	token := tokenOf(r.Header)
	if token == "" || caller.Of != "" {
		return caller, nil
	}
	who, err := v.review(r.Context(), token, r.RemoteAddr)
	if who == nil {
		return caller, err
	}
	caller.Of = resolve.System
	if fitsHeaders(who) {
		caller.SuperUser = who
	}
	return caller, nil
}

// review returns the user of a token; nil for none.
func (v *Reviewer) review(ctx context.Context, token, remote string) (user.Info, error) {
	key := sha256.Sum256([]byte(token))
	if known, ok := v.known.Get(key); ok {
		who, _ := known.(user.Info)
		return who, nil
	}
	if !v.clients.Allows(clientOf(remote)) || !v.all.TryAccept() {
		return nil, ErrTooManyTokens
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := v.client.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	var who user.Info
	if review.Status.Authenticated {
		who = &user.DefaultInfo{Name: review.Status.User.Username, Groups: review.Status.User.Groups}
	}
	v.known.Add(key, who, answerFor)
	return who, nil
}

// clientOf returns the address of a client, without the port; of IPv6 the
// network, which one client has.
func clientOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(networkBits, ipv6Bits)).String()
	}
	return host
}
