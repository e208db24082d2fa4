package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"

	"github.com/virtualcluster/virtualcluster/gateway/pace"
	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

const (
	// answerFor is how long an answer of the super cluster is kept. A token that was
	// revoked leads to projects for that time; the super cluster itself
	// authenticates each request.
	answerFor = 10 * time.Second
	// rememberedFor is how long it is remembered whether a token was authenticated,
	// and remembered of how many tokens. One that was not is a stranger for
	// strangerFor, until it is reviewed again.
	rememberedFor, strangerFor = time.Hour, 10 * time.Minute
	remembered                 = 4096
	// addresses is of how many clients the pace is known.
	addresses = 4096
	// In a second, a client may send failures tokens that are not authenticated. Of
	// tokens that are not known, audienceReviews are reviewed for one tenant, and
	// allReviews for all; of known ones, ownerReviews of one owner. The bursts are
	// what they have not used.
	failures, failureBurst               = 20, 100
	audienceReviews, audienceReviewBurst = 100, 200
	ownerReviews, ownerReviewBurst       = 200, 2000
	allReviews, allReviewBurst           = 200, 400
	addressFor                           = time.Hour
	reviewTimeout                        = 10 * time.Second
	networkBits                          = 64
	ipv6Bits                             = 128
)

// ErrTooManyTokens is a client that sends too many tokens which are of no tenant.
var ErrTooManyTokens = errors.New("too many tokens that the gateway does not know: wait a moment")

// Reviewer recognizes tokens that the super cluster signed. What clients can make it
// ask and remember is bounded; those who send forged tokens keep no known token from
// being recognized.
type Reviewer struct {
	client authenticationclient.TokenReviewInterface
	// known has the answers about tokens that were authenticated at any time, and
	// strangers those about others, by the hash of the token.
	known, strangers *cache.LRUExpireCache
	// clients is the pace of each address, audiences that of tokens for each tenant,
	// owners that of known tokens of each owner, and all that of all together.
	clients, audiences, owners *pace.Pace
	all                        *rate.Limiter
	// asking are the reviews in flight: that of a token is one.
	asking singleflight.Group
}

// answer is what the super cluster says of a token.
type answer struct {
	// who is the user as whom it authenticates the token; nil for none.
	who user.Info
	// known: it has authenticated the token, then or before.
	known bool
	at    time.Time
}

func (a answer) isFresh() bool { return time.Since(a.at) < answerFor }

// NewReviewer makes a reviewer.
func NewReviewer(client authenticationclient.TokenReviewInterface) *Reviewer {
	return &Reviewer{
		client: client, known: cache.NewLRUExpireCache(remembered), strangers: cache.NewLRUExpireCache(remembered),
		clients:   pace.New(failures, failureBurst, addresses, addressFor),
		audiences: pace.New(audienceReviews, audienceReviewBurst, addresses, addressFor),
		owners:    pace.New(ownerReviews, ownerReviewBurst, addresses, addressFor),
		all:       rate.NewLimiter(allReviews, allReviewBurst),
	}
}

// Of returns a caller whose token is of no tenant as one of the super cluster, if
// the super cluster authenticates the token, or did. The client has a remote address.
func (v *Reviewer) Of(ctx context.Context, caller Caller, remote string) (Caller, error) {
	if caller.Token == "" || caller.Of != "" {
		return caller, nil
	}
	last, err := v.review(ctx, caller.Token, remote, nil)
	if err != nil {
		return caller, err
	}
	if last.known {
		caller.Of = resolve.System
	}
	if who := last.who; who != nil && fitsHeaders(who) {
		caller.SuperUser = &user.DefaultInfo{Name: who.GetName(), Groups: who.GetGroups()}
	}
	return caller, nil
}

// IsStranger reports whether the super cluster did not authenticate a token lately,
// and has not done so before.
func (v *Reviewer) IsStranger(token string) bool {
	last, found := v.strangers.Get(keyOf(token))
	return found && time.Since(last.(answer).at) < strangerFor
}

// Review returns the user of a token for one of the audiences, or for the super
// cluster without any; nil for none. The client has a remote address.
func (v *Reviewer) Review(ctx context.Context, token, remote string, audiences ...string) (user.Info, error) {
	last, err := v.review(ctx, token, remote, audiences)
	return last.who, err
}

func (v *Reviewer) review(ctx context.Context, token, remote string, audiences []string) (answer, error) {
	key := keyOf(token, audiences...)
	if last := v.last(key); last.isFresh() {
		return last, nil
	}
	asked := v.asking.DoChan(key, func() (any, error) {
		last := v.last(key)
		if last.isFresh() { // it was reviewed in between
			return last, nil
		}
		end, ok := v.admit(last, remote, audiences)
		if !ok {
			return answer{}, ErrTooManyTokens
		}
		// Others wait for the answer, too.
		who, err := v.ask(context.WithoutCancel(ctx), token, audiences)
		end(err == nil && who == nil)
		if err != nil {
			return answer{}, err
		}
		now := answer{who: who, known: who != nil || last.known, at: time.Now()}
		v.remember(key, now)
		return now, nil
	})
	select {
	case <-ctx.Done():
		return answer{}, fmt.Errorf("review a token: %w", ctx.Err())
	case result := <-asked:
		return result.Val.(answer), result.Err
	}
}

// ask asks the super cluster.
func (v *Reviewer) ask(ctx context.Context, token string, audiences []string) (user.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	review, err := v.client.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	if review.Status.Authenticated && (len(audiences) == 0 || hasAny(review.Status.Audiences, audiences)) {
		return UserOf(review.Status.User), nil
	}
	return nil, nil
}

// admit reports whether a token may be reviewed now. The tokens for one tenant leave
// reviews to the others. Strangers that come back need no place: their number limits
// them. The caller calls end.
func (v *Reviewer) admit(last answer, remote string, audiences []string) (end func(failed bool), ok bool) {
	end = func(bool) {}
	switch {
	case last.who != nil:
		return end, v.owners.Allows(ownerOf(last.who, audiences))
	case !last.at.IsZero() && time.Since(last.at) >= strangerFor:
		return end, true
	}
	end, ok = v.clients.Begin(clientOf(remote))
	if ok && (len(audiences) > 0 && !v.audiences.Allows(converted.OfAudience(audiences[0])) || !v.all.Allow()) {
		end(false)
		return nil, false
	}
	return end, ok
}

// last returns the last answer about a token; one that is not fresh if there is none.
func (v *Reviewer) last(key string) answer {
	found, ok := v.known.Get(key)
	if !ok {
		found, _ = v.strangers.Get(key)
	}
	last, _ := found.(answer)
	return last
}

func (v *Reviewer) remember(key string, now answer) {
	if !now.known {
		v.strangers.Add(key, now, rememberedFor)
		return
	}
	v.strangers.Remove(key)
	v.known.Add(key, now, rememberedFor)
}

// keyOf returns the hash of a token for audiences.
func keyOf(token string, audiences ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Concat(audiences, []string{token}), "\x00")))
	return string(sum[:])
}

// ownerOf returns who has a token: the tenant whose audience it is for, or a user
// of the super cluster.
func ownerOf(who user.Info, audiences []string) string {
	if len(audiences) > 0 {
		return converted.OfAudience(audiences[0])
	}
	return who.GetName()
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
