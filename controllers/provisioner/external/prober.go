package external

import (
	"bytes"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	// fresh is how old an answer may be until the question is put again.
	fresh = 10 * time.Second
	// inFlight is how many apiservers are probed at the same time; those that
	// hang take up to the timeout.
	inFlight = 64
)

// question is what to ask an apiserver with.
type question struct {
	kubeconfig []byte
	config     *rest.Config
}

// answer is what an apiserver said: its version, or why it is of no use.
type answer struct {
	of      question
	version string
	failure *provisioner.Failure
}

// same reports whether two answers to the same request are equal.
func (a *answer) same(b *answer) bool {
	if a == nil || b == nil || (a.failure == nil) != (b.failure == nil) {
		return a == b
	}
	if a.failure != nil && *a.failure != *b.failure {
		return false
	}
	return a.version == b.version && bytes.Equal(a.of.kubeconfig, b.of.kubeconfig)
}

// job is a question on its way.
type job struct {
	vc       *tenancyv1alpha1.VirtualCluster
	question question
}

// tenant is what is known of one VirtualCluster's apiserver.
type tenant struct {
	asked  []byte    // the kubeconfig of the last question
	at     time.Time // when it was put
	busy   bool      // whether it is on its way
	answer *answer   // the last one; nil before the first
}

// prober asks apiservers in the background and remembers their last answers.
type prober struct {
	ask    func(context.Context, question) *answer
	wake   chan struct{} // says that there may be something waiting
	events chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]

	mu      sync.Mutex // guards what follows; never held while waiting
	tenants map[types.UID]*tenant
	waiting []job // first come, first served; at most one a tenant
}

func newProber(ask func(context.Context, question) *answer) *prober {
	return &prober{
		ask:     ask,
		wake:    make(chan struct{}, 1),
		events:  make(chan event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]),
		tenants: map[types.UID]*tenant{},
	}
}

// look returns the last answer, or nil before the first. The question is put if
// it is another one or the answer is old; until the answer is there, the one
// before stands, so that a renewed kubeconfig does not look like an outage.
func (p *prober) look(vc *tenancyv1alpha1.VirtualCluster, q question) *answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.tenants[vc.UID]
	if !ok {
		t = &tenant{}
		p.tenants[vc.UID] = t
	}
	if t.busy || bytes.Equal(t.asked, q.kubeconfig) && time.Since(t.at) < fresh {
		return t.answer
	}
	t.asked, t.at, t.busy = q.kubeconfig, time.Now(), true
	p.waiting = append(p.waiting, job{vc: vc.DeepCopy(), question: q})
	p.signal()
	return t.answer
}

// signal wakes run, unless it is about to look anyway.
func (p *prober) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// next takes the question that has waited longest. One signal may stand for
// several.
func (p *prober) next() (job, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return job{}, false
	}
	j := p.waiting[0]
	p.waiting = p.waiting[1:]
	if len(p.waiting) > 0 {
		p.signal()
	}
	return j, true
}

// forget drops what is known of a VirtualCluster.
func (p *prober) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tenants, uid)
}

// run puts the questions until the context ends, and returns when none is on
// its way any more.
func (p *prober) run(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	slots := make(chan struct{}, inFlight)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
		select {
		case <-ctx.Done():
			return nil
		case slots <- struct{}{}:
		}
		j, ok := p.next()
		if !ok {
			<-slots
			continue
		}
		asking.Go(func() {
			defer func() { <-slots }()
			p.settle(ctx, j, p.ask(ctx, j.question))
		})
	}
}

// settle remembers an answer, and tells if it is news.
func (p *prober) settle(ctx context.Context, j job, a *answer) {
	if !p.remember(j, a) {
		return
	}
	select {
	case p.events <- event.TypedGenericEvent[*tenancyv1alpha1.VirtualCluster]{Object: j.vc}:
	case <-ctx.Done():
	}
}

// remember reports whether the answer is another than before.
func (p *prober) remember(j job, a *answer) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.tenants[j.vc.UID]
	if !ok {
		return false
	}
	news = !t.answer.same(a)
	t.busy, t.answer = false, a
	return news
}
