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
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
)

const (
	// recognizedFor and unknownFor are how long an answer of the super cluster is
	// kept. It authenticates each request itself, so that a token which was revoked
	// is of no more use in that time.
	recognizedFor, unknownFor = 2 * time.Minute, 10 * time.Second
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
	// known has whether the super cluster authenticates a token, by its hash, and
	// clients the rate limits by address.
	known, clients *cache.LRUExpireCache
	all            flowcontrol.RateLimiter
}

// NewReviewer makes a reviewer.
func NewReviewer(client authenticationclient.TokenReviewInterface) *Reviewer {
	return &Reviewer{
		client: client, known: cache.NewLRUExpireCache(answers), clients: cache.NewLRUExpireCache(addresses),
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
	recognized, err := v.recognizes(r.Context(), token, r.RemoteAddr)
	if recognized {
		caller.Of = resolve.System
	}
	return caller, err
}

func (v *Reviewer) recognizes(ctx context.Context, token, remote string) (bool, error) {
	key := sha256.Sum256([]byte(token))
	if known, ok := v.known.Get(key); ok {
		return known.(bool), nil
	}
	if !v.limitOf(remote).TryAccept() || !v.all.TryAccept() {
		return false, ErrTooManyTokens
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := v.client.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review a token: %w", err)
	}
	recognized, ttl := review.Status.Authenticated, unknownFor
	if recognized {
		ttl = recognizedFor
	}
	v.known.Add(key, recognized, ttl)
	return recognized, nil
}

// limitOf returns the rate limit of a client.
func (v *Reviewer) limitOf(remote string) flowcontrol.RateLimiter {
	client := clientOf(remote)
	if limit, ok := v.clients.Get(client); ok {
		return limit.(flowcontrol.RateLimiter)
	}
	limit := flowcontrol.NewTokenBucketRateLimiter(reviews, reviewBurst)
	v.clients.Add(client, limit, addressFor)
	return limit
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
