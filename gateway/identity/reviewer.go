package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
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
	// A client sends reviews tokens a second that are not known, those for one
	// audience, which a tenant has, are audienceReviews, and all of them
	// allReviews: what they do not use, the next ones may.
	reviews, reviewBurst                 = 5, 20
	audienceReviews, audienceReviewBurst = 20, 50
	allReviews, allReviewBurst           = 100, 200
	addressFor                           = time.Hour
	reviewTimeout                        = 10 * time.Second
	networkBits                          = 64
	ipv6Bits                             = 128
)

// ErrTooManyTokens is a client that sends too many tokens which are of no tenant.
var ErrTooManyTokens = errors.New("too many tokens that the gateway does not know: wait a moment")

// Reviewer recognizes tokens that the super cluster signed. What clients can make it
// ask and remember is bounded.
type Reviewer struct {
	client authenticationclient.TokenReviewInterface
	// known has the user as whom the super cluster authenticates a token, nil for
	// none, by the hash of the token.
	known *cache.LRUExpireCache
	// clients is the pace of each address, audiences that of tokens for each of
	// them, and all that of all together.
	clients, audiences *pace.Pace
	all                flowcontrol.RateLimiter
}

// NewReviewer makes a reviewer.
func NewReviewer(client authenticationclient.TokenReviewInterface) *Reviewer {
	return &Reviewer{
		client: client, known: cache.NewLRUExpireCache(answers), clients: pace.New(reviews, reviewBurst, addresses, addressFor),
		audiences: pace.New(audienceReviews, audienceReviewBurst, addresses, addressFor),
		all:       flowcontrol.NewTokenBucketRateLimiter(allReviews, allReviewBurst),
	}
}

// Of returns the identity of a caller whose token is of no tenant: that of the
// super cluster, if the super cluster authenticates it.
func (v *Reviewer) Of(r *http.Request, caller resolve.Identity) (resolve.Identity, error) {
	token := TokenOf(r.Header)
	if token == "" || caller.Of != "" {
		return caller, nil
	}
	who, err := v.Review(r.Context(), token, r.RemoteAddr)
	if who == nil {
		return caller, err
	}
	caller.Of = resolve.System
	if fitsHeaders(who) {
		caller.SuperUser = &user.DefaultInfo{Name: who.GetName(), Groups: who.GetGroups()}
	}
	return caller, nil
}

// Review returns the user of a token for one of the audiences, or for the super
// cluster without any; nil for none. The client has a remote address.
func (v *Reviewer) Review(ctx context.Context, token, remote string, audiences ...string) (user.Info, error) {
	key := sha256.Sum256([]byte(strings.Join(slices.Concat(audiences, []string{token}), "\x00")))
	if known, ok := v.known.Get(key); ok {
		who, _ := known.(user.Info)
		return who, nil
	}
	if !v.allows(remote, audiences) {
		return nil, ErrTooManyTokens
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	review, err := v.client.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	var who user.Info
	if review.Status.Authenticated && (len(audiences) == 0 || hasAny(review.Status.Audiences, audiences)) {
		who = UserOf(review.Status.User)
	}
	v.known.Add(key, who, answerFor)
	return who, nil
}

// allows reports whether a token may be reviewed now. The tokens for one tenant
// leave reviews to the others.
func (v *Reviewer) allows(remote string, audiences []string) bool {
	return v.clients.Allows(clientOf(remote)) &&
		(len(audiences) == 0 || v.audiences.Allows(tenantOf(audiences[0]))) && v.all.TryAccept()
}

// tenantOf returns what all audiences of a tenant begin with.
func tenantOf(audience string) string {
	const steps = 2
	parts := strings.Split(audience, "/")
	return strings.Join(parts[:min(len(parts), steps)], "/")
}

// UserOf returns a user that the API describes.
func UserOf(reviewed authenticationv1.UserInfo) user.Info {
	who := &user.DefaultInfo{Name: reviewed.Username, UID: reviewed.UID, Groups: reviewed.Groups}
	for key, values := range reviewed.Extra {
		if who.Extra == nil {
			who.Extra = map[string][]string{}
		}
		who.Extra[key] = values
	}
	return who
}

// hasAny reports whether a list has one of the wanted values. An apiserver that
// knows no audiences returns none.
func hasAny(list, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(one string) bool { return slices.Contains(list, one) })
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
