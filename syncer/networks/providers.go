package networks

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/virtualcluster/virtualcluster/internal/panics"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// Providers are the providers of networks that a syncer offers, by type.
type Providers struct {
	offers  map[string]network.Offer
	metrics *Metrics
	logger  logr.Logger

	mu sync.Mutex
	// served has the networks of the tenants that are engaged, by cluster key.
	served map[string]*provisions
}

// ProviderOptions are what providers are made with.
type ProviderOptions struct {
	Client     client.Client
	Logger     logr.Logger
	Registerer prometheus.Registerer
	Metrics    *Metrics
}

// NewProviders creates the providers of registrations.
func NewProviders(opts ProviderOptions, registrations ...network.Registration) (*Providers, error) {
	p := &Providers{metrics: opts.Metrics, logger: opts.Logger, served: map[string]*provisions{}}
	var err error
	p.offers, err = network.Make(network.Environment{
		Client: opts.Client, Changed: p.changed, Logger: opts.Logger, Registerer: opts.Registerer,
	}, registrations...)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Runnables returns the providers that have work of their own.
func (p *Providers) Runnables() []manager.Runnable {
	var all []manager.Runnable
	for _, offer := range p.offers {
		if runnable, works := offer.Provider.(manager.Runnable); works {
			all = append(all, runnable)
		}
	}
	return all
}

// serve registers the networks of a tenant, until the returned function is
// called.
func (p *Providers) serve(tenant string, s *provisions) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served[tenant] = s
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.served[tenant] == s {
			delete(p.served, tenant)
		}
	}
}

// changed causes a provider to be called for a network.
func (p *Providers) changed(tenant, name string) {
	p.mu.Lock()
	s := p.served[tenant]
	p.mu.Unlock()
	if s != nil {
		s.renew(name)
	}
}

// Methods of providers, in metrics and logs.
const (
	ensureMethod = "Ensure"
	deleteMethod = "Delete"

	prepareMethod = "PreparePod"
	releaseMethod = "ReleasePod"
)

// ensure returns what asks the provider of a network to ensure it.
func (p *Providers) ensure(n network.Network) func(context.Context) answer {
	offer := p.offers[n.Spec.Type]
	return func(ctx context.Context) answer {
		state, err := offer.Ensure(ctx, n)
		if err == nil {
			state, err = checked(n, state)
		}
		return answer{state: state, err: err}
	}
}

// errNotOffered is the answer about a network of a type that had a provider.
var errNotOffered = errors.New("no provider offers its type any more")

// remove returns what asks the provider of a network to delete it.
func (p *Providers) remove(n network.Network) func(context.Context) answer {
	offer, offered := p.offers[n.Spec.Type]
	return func(ctx context.Context) answer {
		if !offered {
			return answer{err: errNotOffered}
		}
		gone, err := offer.Delete(ctx, n)
		return answer{gone: gone && err == nil, err: err}
	}
}

// attach returns what asks the provider of a pod's network to prepare or to
// release the pod.
func (p *Providers) attach(method string, pod network.Pod) func(context.Context) answer {
	offer, offered := p.offers[pod.Network.Spec.Type]
	return func(ctx context.Context) answer {
		switch {
		case !offered:
			return answer{err: errNotOffered}
		case method == releaseMethod:
			gone, err := offer.ReleasePod(ctx, pod)
			return answer{gone: gone && err == nil, err: err}
		}
		attachment, err := offer.PreparePod(ctx, pod)
		if err == nil {
			err = checkArgs(attachment.CNIArgs)
		}
		return answer{attachment: attachment, err: err}
	}
}

// record counts an answer, and logs the error of a provider that does not work.
func (p *Providers) record(tenant, name string, q question, a answer) {
	result := resultOf(a)
	p.metrics.calls.WithLabelValues(q.kind, q.method, result).Inc()
	if result == errored || result == panicked || result == timedOut {
		p.logger.Error(a.err, "A provider did not answer", "type", q.kind, "tenant", tenant, "network", name, "method", q.method)
	}
}

// resultOf returns the result of a call, for the metrics.
func resultOf(a answer) string {
	switch {
	case a.isFinal():
		return done
	case a.err == nil:
		return underWay
	case errors.Is(a.err, panics.ErrPanic):
		return panicked
	case errors.Is(a.err, errHangs), errors.Is(a.err, context.DeadlineExceeded):
		return timedOut
	case plugins.AsRejection(a.err) != nil:
		return rejected
	}
	return errored
}
