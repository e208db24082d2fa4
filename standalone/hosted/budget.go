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
	// planeBudget is the memory that requests under way of one control plane may
	// take together, by estimate.
	planeBudget = 256 << 20
	// leastHostBudget is the same for all control planes of a host; it is more
	// where the process may have more.
	leastHostBudget   = 1 << 30
	hostBudgetPercent = 25
	// smallRequest is a request that does not count for the host: other tenants'
	// large ones do not keep it waiting.
	smallRequest = 4 << 20
	// budgetPatience is how long a request waits for others to end.
	budgetPatience = 10 * time.Second

	// baseCost is what any request takes. bodyFactor is how many bytes of memory a
	// byte of a body takes, decoded; longestBody is upstream's limit.
	baseCost    = 64 << 10
	bodyFactor  = 16
	longestBody = 3 << 20
	// Objects are listed one by one out of a cache, unless they are converted as a
	// whole.
	listFactor, convertFactor = 1, 8
)

// budget bounds the memory that the requests under way of one control plane
// take. Upstream exempts cluster admins from its own limits of requests, and
// each tenant is one.
type budget struct {
	plane, host *semaphore.Weighted
	hostSize    int64
	// used is how many bytes the control plane stores.
	used func() int64
}

// hostBudget is the size of the budget of a host.
func hostBudget() int64 {
	limit := debug.SetMemoryLimit(-1) // reads it
	if limit == math.MaxInt64 {
		return leastHostBudget
	}
	return max(leastHostBudget, limit/percent*hostBudgetPercent)
}

// limitRequests has a control plane's requests, but for those of its own
// controllers, wait for memory.
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
				"other requests of this cluster take all memory that it may have for them: "+
					"send fewer at a time, or list in pages", retryAfter), scheme.Codecs, schema.GroupVersion{}, w, r)
			return
		}
		defer release()
		handler.ServeHTTP(w, r)
	})
}

// acquire waits for the memory that a request takes. A request that takes more
// than there is gets all of it.
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

// cost estimates the memory that a request takes where the control plane stores
// so many bytes.
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
