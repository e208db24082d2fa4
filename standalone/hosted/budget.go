package hosted

import (
	"context"
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// planeBudget is the estimated memory that the requests in flight of one
	// control plane may use together.
	planeBudget = 256 << 20
	// leastHostBudget is the minimum of the same for all control planes of a
	// host. It is more if the process has a higher memory limit.
	leastHostBudget   = 1 << 30
	hostBudgetPercent = 25
	// smallRequest is the cost up to which a request does not count for the
	// host, so that large requests of other tenants do not delay it.
	smallRequest = 4 << 20
	// budgetPatience is how long a request waits for others to finish.
	budgetPatience = 10 * time.Second

	// baseCost is the memory of any request. bodyFactor is the memory of each
	// byte of a body, decoded; longestBody is upstream's limit.
	baseCost    = 64 << 10
	bodyFactor  = 16
	longestBody = 3 << 20
	// Lists from a cache are encoded object by object, unless they are
	// converted as a whole.
	listFactor, convertFactor = 1, 8
)

// budget limits the memory of the requests in flight of one control plane.
// Upstream exempts cluster admins from its own limits, and each tenant is one.
type budget struct {
	plane, host *semaphore.Weighted
	hostSize    int64
	// used returns how many bytes the control plane stores.
	used func() int64
}

// hostBudget returns the size of the budget of a host.
func hostBudget() int64 {
	limit := debug.SetMemoryLimit(-1) // a negative limit only reads it
	if limit == math.MaxInt64 {
		return leastHostBudget
	}
	return max(leastHostBudget, limit/percent*hostBudgetPercent)
}

// limitRequests delays the requests of a control plane until memory is
// available, except those of its own controllers.
func (b *budget) limitRequests(handler http.Handler, c *genericapiserver.Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := c.RequestInfoResolver.NewRequestInfo(r)
		if err != nil || isInternal(r.Context()) || c.LongRunningFunc(r, info) {
			handler.ServeHTTP(w, r)
			return
		}
		release, err := b.acquire(r.Context(), cost(r, info, b.used()))
		if err != nil {
			responsewriters.ErrorNegotiated(apierrors.NewTooManyRequests(
				"other requests of this cluster use all the memory that it may have for them:"+
					"send fewer at a time, or list in pages", retryAfter), scheme.Codecs, schema.GroupVersion{}, w, r)
			return
		}
		defer release()
		handler.ServeHTTP(w, r)
	})
}

// acquire waits for the memory of a request. A request that exceeds the budget
// gets all of it.
func (b *budget) acquire(ctx context.Context, cost int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, budgetPatience)
	defer cancel()
	own := min(cost, planeBudget)
	if err := b.plane.Acquire(ctx, own); err != nil {
		return nil, err
	}
	if cost <= smallRequest {
		return func() { b.plane.Release(own) }, nil
	}
	shared := min(cost, b.hostSize)
	if err := b.host.Acquire(ctx, shared); err != nil {
		b.plane.Release(own)
		return nil, err
	}
	return func() {
		b.host.Release(shared)
		b.plane.Release(own)
	}, nil
}

// cost estimates the memory of a request to a control plane that stores a
// number of bytes.
func cost(r *http.Request, info *apirequest.RequestInfo, used int64) int64 {
	sum := int64(baseCost)
	if r.Body != nil && r.Body != http.NoBody {
		length := r.ContentLength
		if length < 0 || length > longestBody {
			length = longestBody
		}
		sum += length * bodyFactor
	}
	if !info.IsResourceRequest || info.Verb != "list" && info.Verb != "deletecollection" {
		return sum
	}
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, "yaml") || strings.Contains(accept, "as=") {
		return sum + used*convertFactor
	}
	return sum + used*listFactor
}
