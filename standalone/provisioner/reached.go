package provisioner

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// calm is the time without a rejection after which a limit is no longer
// reached, so that clients that retry cause one event.
const calm = time.Minute

// limit is a limit that a control plane may reach.
type limit struct {
	// reason is the reason of the condition WithinLimits.
	reason string
	// rejected returns the number of rejections.
	rejected func(hosted.Consumption) int64
	// holds reports whether the limit is reached without a rejection; nil if
	// only rejections show it.
	holds func(hosted.Consumption) bool
	// describe describes the limit and what is used.
	describe func(hosted.Consumption) string
}

// limits returns all limits, the most important first.
func limits() []limit {
	return []limit{
		{tenancyv1alpha1.ReasonStorageLimitReached, writes(quota.ReasonStorage), isFull, describeStorage},
		{
			tenancyv1alpha1.ReasonExpressionLimitReached,
			func(c hosted.Consumption) int64 { return c.Expressions.Rejected }, nil, describeExpressions,
		},
		{
			tenancyv1alpha1.ReasonMemoryPressure, requests(inflight.ReasonPressure),
			func(c hosted.Consumption) bool { return c.Requests.Shed }, describePressure,
		},
		{tenancyv1alpha1.ReasonRequestsThrottled, requests(inflight.ReasonReads), nil, describeRequests(inflight.Read)},
		{tenancyv1alpha1.ReasonRequestsThrottled, requests(inflight.ReasonWrites), nil, describeRequests(inflight.Write)},
		{tenancyv1alpha1.ReasonRequestsThrottled, requests(inflight.ReasonWatches), nil, describeRequests(inflight.Watch)},
		{tenancyv1alpha1.ReasonRequestsThrottled, requests(inflight.ReasonWebhooks), nil, describeRequests(inflight.WebhookCall)},
		{tenancyv1alpha1.ReasonRequestsThrottled, requests(inflight.ReasonMemory), nil, describeMemory},
		{tenancyv1alpha1.ReasonRequestsThrottled, requests(inflight.ReasonHeads), nil, describeHeads},
		{tenancyv1alpha1.ReasonWritesThrottled, writes(quota.ReasonPace), nil, describePace},
	}
}

func writes(reason quota.Reason) func(hosted.Consumption) int64 {
	return func(c hosted.Consumption) int64 { return c.Rejected[reason] }
}

func requests(reason inflight.Reason) func(hosted.Consumption) int64 {
	return func(c hosted.Consumption) int64 { return c.Requests.Rejected[reason] }
}

// isFull reports whether a control plane stores as much as it may, or more
// since its limit was lowered.
func isFull(c hosted.Consumption) bool {
	return c.Limits.Bytes > 0 && c.Stored.Bytes >= c.Limits.Bytes || c.Limits.Objects > 0 && c.Stored.Objects >= c.Limits.Objects
}

func describeStorage(c hosted.Consumption) string {
	return fmt.Sprintf("%s of %s and %d of %s objects are stored: writes that need more are rejected",
		size(c.Stored.Bytes), unlessZero(size(c.Limits.Bytes)), c.Stored.Objects, unlessZero(strconv.FormatInt(c.Limits.Objects, 10)))
}

func describeExpressions(c hosted.Consumption) string {
	return fmt.Sprintf("the expressions that are stored are as much work as %d of the usual length, of %s: writes that need more are rejected",
		c.Expressions.Used, unlessZero(strconv.FormatInt(c.Expressions.Limit, 10)))
}

func describePressure(c hosted.Consumption) string {
	return "the host is short of memory, and the requests of this control plane take the most, " + size(c.Requests.Bytes)
}

func describeRequests(kind inflight.Kind) func(hosted.Consumption) string {
	return func(c hosted.Consumption) string {
		return fmt.Sprintf("more requests of the kind %s were in flight than the limit of %d", kind, c.Requests.Limits.Of(kind))
	}
}

func describeMemory(c hosted.Consumption) string {
	return "requests wait for the memory of others, which take " + size(c.Requests.Bytes)
}

func describeHeads(hosted.Consumption) string {
	return "the URLs, headers and selectors of requests in flight took more memory than they may"
}

func describePace(c hosted.Consumption) string {
	return fmt.Sprintf("more was written than %s times or %s a second",
		unlessZero(strconv.FormatInt(c.Limits.WritesPerSecond, 10)), unlessZero(size(c.Limits.WriteBytesPerSecond)))
}

func size(bytes int64) string { return quota.FormatBytes(bytes) }

// unlessZero returns a limit in words; zero means that there is none.
func unlessZero(limit string) string {
	if limit == "0" {
		return "any number of"
	}
	return limit
}

// reachedLimits remembers which limits a control plane has reached.
type reachedLimits struct {
	mu       sync.Mutex
	last     hosted.Consumption
	until    map[int]time.Time // by the index of the limit
	reported provisioner.Limits
}

// observe compares what a control plane takes with what it took before, and
// reports whether other limits are reached than before.
func (r *reachedLimits) observe(c hosted.Consumption, now time.Time) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, l := range limits() {
		_, was := r.until[i]
		switch {
		case l.rejected(c) > l.rejected(r.last), l.holds != nil && l.holds(c):
			if r.until == nil {
				r.until = map[int]time.Time{}
			}
			r.until[i] = now.Add(calm)
			changed = changed || !was
		case was && now.After(r.until[i]):
			delete(r.until, i)
			changed = true
		}
	}
	r.last = c
	if changed {
		r.reported = r.describe()
	}
	return changed
}

// describe describes the limits that are reached. The message is stable until
// others are reached.
func (r *reachedLimits) describe() provisioner.Limits {
	described := provisioner.Limits{}
	var parts []string
	for i, l := range limits() {
		if _, ok := r.until[i]; !ok {
			continue
		}
		if described.Reached == "" {
			described.Reached = l.reason
		}
		parts = append(parts, l.describe(r.last))
	}
	described.Message = strings.Join(parts, "; ")
	return described
}

// report returns the limits that are reached.
func (r *reachedLimits) report() *provisioner.Limits {
	r.mu.Lock()
	defer r.mu.Unlock()
	reported := r.reported
	return &reported
}
