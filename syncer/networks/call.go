package networks

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/internal/panics"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

const (
	// callTimeout limits a call of a provider, and callGrace is how long it may
	// take to return after its context is done.
	callTimeout = 10 * time.Second
	callGrace   = 100 * time.Millisecond
	// firstRetry is the first pause after an answer that is not final.
	firstRetry = time.Second
)

// errHangs is the answer of a provider that does not return.
var errHangs = errors.New("it did not answer in time")

// answer is what a provider has answered about a network or a pod.
type answer struct {
	state      network.State
	attachment network.Attachment
	gone       bool
	err        error
}

// isFinal reports whether nothing is being waited for.
func (a answer) isFinal() bool {
	return a.err == nil && (a.state.Ready || a.attachment.Ready || a.gone)
}

// question is a call of a provider about a network.
type question struct {
	method     string
	kind       string // spec.type of the network
	uid        types.UID
	generation int64
}

// call asks a provider about one network or pod, once at a time, and keeps its
// latest answer. A provider that hangs occupies one goroutine, and is not called
// for the same again until it has returned.
type call struct {
	// interval is when a final answer is renewed.
	interval time.Duration
	// answered is called after each answer.
	answered func(question, answer)

	mu      sync.Mutex
	asked   question
	running bool
	// pending is closed when there is an answer; nil while none is awaited.
	pending chan struct{}
	latest  *answer
	due     time.Time
	delay   wait.DelayFunc
}

// ask asks a question, unless the latest answer to it still holds or a call is
// running.
func (c *call) ask(ctx context.Context, q question, do func(context.Context) answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q != c.asked {
		if q.method != c.asked.method || q.uid != c.asked.uid {
			c.latest = nil
		}
		c.asked, c.due = q, time.Time{}
		c.resetDelay()
	}
	if c.running || time.Now().Before(c.due) {
		return
	}
	c.running, c.pending = true, make(chan struct{})
	go c.run(ctx, q, do)
}

// run calls the provider.
func (c *call) run(ctx context.Context, q question, do func(context.Context) answer) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	giveUp := time.AfterFunc(callTimeout+callGrace, func() { c.keep(q, answer{err: errHangs}, true) })
	a := contained(ctx, do)
	giveUp.Stop()
	c.keep(q, a, false)
}

// contained returns a panic as an answer.
func contained(ctx context.Context, do func(context.Context) answer) (a answer) {
	defer panics.Recover(&a.err)
	return do(ctx)
}

// keep keeps an answer. A call that hangs is still running.
func (c *call) keep(q question, a answer, hangs bool) {
	c.mu.Lock()
	c.running = hangs && c.running
	if q == c.asked || hangs {
		c.latest, c.due = &a, time.Now().Add(c.pause(a))
	}
	if c.pending != nil {
		close(c.pending)
		c.pending = nil
	}
	c.mu.Unlock()
	c.answered(q, a)
}

// pause returns how long an answer holds.
func (c *call) pause(a answer) time.Duration {
	if a.isFinal() {
		c.resetDelay()
		return c.interval
	}
	return c.delay()
}

// retry returns when to repeat what could not be done with an answer.
func (c *call) retry() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delay()
}

func (c *call) resetDelay() {
	c.delay = wait.Backoff{Duration: min(firstRetry, c.interval), Factor: 2, Jitter: 0.1, Steps: 10, Cap: c.interval}.DelayFunc()
}

// renew causes the provider to be called again.
func (c *call) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = time.Time{}
}

// await waits for the answer to a call that is running.
func (c *call) await(ctx context.Context) {
	c.mu.Lock()
	pending := c.pending
	c.mu.Unlock()
	if pending == nil {
		return
	}
	select {
	case <-pending:
	case <-ctx.Done():
	}
}

// removed reports whether the provider has deleted the network with a UID.
func (c *call) removed(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked.method == deleteMethod && c.asked.uid == uid && c.latest != nil && c.latest.gone
}

// isRunning reports whether the provider has not returned.
func (c *call) isRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// answer returns the latest answer; nil if there is none. again is how long it
// holds; negative while a call is running, which reports its answer.
func (c *call) answer() (latest *answer, again time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return c.latest, -1
	}
	return c.latest, max(0, time.Until(c.due))
}
