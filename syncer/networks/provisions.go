package networks

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// provisions are the networks of one tenant at their providers.
type provisions struct {
	providers *Providers
	vault     vault
	tenant    plugins.Tenant
	interval  time.Duration
	// wake is called when a provider has answered.
	wake func()

	// records are as they were read or written last; nil if they are not known.
	records records

	mu    sync.Mutex
	calls map[string]*call
}

// vault keeps the records of a tenant.
type vault interface {
	read(ctx context.Context) (records, error)
	write(ctx context.Context, all records) error
}

// provided is what is known of a network at its provider.
type provided struct {
	// offered is set if its type has a provider.
	offered bool
	// handed is set while its provider may have something of it.
	handed bool
	// taken is set while the provider may have something of an earlier network of
	// the name.
	taken bool
	// full is set if no further network can be handed to providers.
	full bool
	// latest is the latest answer; nil if there is none.
	latest *answer
}

// load reads the records, unless they are known.
func (s *provisions) load(ctx context.Context) error {
	if s.records != nil {
		return nil
	}
	var err error
	s.records, err = s.vault.read(ctx)
	return err
}

// save writes changed records.
func (s *provisions) save(ctx context.Context, changed records) error {
	if err := s.vault.write(ctx, changed); err != nil {
		s.records = nil // the write may have taken effect
		return err
	}
	s.records = changed
	return nil
}

// handOver records the networks that are handed to providers from now on. A
// provider learns of a network afterwards only, so that none is forgotten.
func (s *provisions) handOver(ctx context.Context, networks []networkv1.Network) error {
	changed := maps.Clone(s.records)
	for i := range networks {
		n := &networks[i]
		offer, offered := s.providers.offers[n.Spec.Type]
		_, recorded := changed[n.Name]
		if offered && !offer.Passive && !recorded && n.DeletionTimestamp == nil && len(changed) < maxNetworks {
			changed[n.Name] = recordOf(n)
		}
	}
	if len(changed) == len(s.records) {
		return nil
	}
	return s.save(ctx, changed)
}

// about returns what is known of a network.
func (s *provisions) about(n *networkv1.Network) provided {
	offer, offered := s.providers.offers[n.Spec.Type]
	r, recorded := s.records[n.Name]
	p := provided{offered: offered, handed: recorded && r == recordOf(n), taken: recorded && r != recordOf(n)}
	p.full = offered && !offer.Passive && !recorded
	if c := s.called(n.Name); c != nil && !p.taken {
		p.latest, _ = c.answer()
	}
	return p
}

// ensure asks the provider of a network to ensure it.
func (s *provisions) ensure(ctx context.Context, n *networkv1.Network) {
	if p := s.about(n); !p.offered || p.taken || p.full {
		return
	}
	of := network.Network{Tenant: s.tenant, Name: n.Name, UID: n.UID, Spec: *n.Spec.DeepCopy()}
	s.call(n.Name).ask(ctx, question{ensureMethod, n.Spec.Type, n.UID, n.Generation}, s.providers.ensure(of))
}

// remove asks the provider of a recorded network to delete it.
func (s *provisions) remove(ctx context.Context, name string) {
	of := s.records[name].network(s.tenant, name)
	s.call(name).ask(ctx, question{method: deleteMethod, kind: of.Spec.Type, uid: of.UID}, s.providers.remove(of))
}

// call returns the call about a network.
func (s *provisions) call(name string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[name]
	if c == nil {
		c = &call{interval: s.interval, answered: func(q question, a answer) {
			s.providers.record(s.tenant.Key, name, q, a)
			s.wake()
		}}
		s.calls[name] = c
	}
	return c
}

// called returns the call about a network; nil if there is none.
func (s *provisions) called(name string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

// forPods returns the record for the pods of a network that its provider
// prepares; empty if it prepares none.
func (s *provisions) forPods(name string) string {
	r, recorded := s.records[name]
	if !recorded {
		return ""
	}
	data, _ := json.Marshal(podRecord{r, s.tenant.UID}) //nolint:errchkjson // strings cannot fail
	return string(data)
}

// renew causes the provider of a network to be called again.
func (s *provisions) renew(name string) {
	if c := s.called(name); c != nil {
		c.renew()
		s.wake()
	}
}

// await waits for the answers of providers that answer at once, so that these
// take no further reconcile.
func (s *provisions) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, breath)
	defer cancel()
	s.mu.Lock()
	calls := maps.Clone(s.calls)
	s.mu.Unlock()
	for _, c := range calls {
		c.await(ctx)
	}
}

// forget forgets the networks that providers have deleted, and the calls about
// networks that do not exist.
func (s *provisions) forget(ctx context.Context, exists func(name string) bool) error {
	left := maps.Clone(s.records)
	for name, r := range s.records {
		if c := s.called(name); c != nil && c.removed(r.UID) {
			delete(left, name)
		}
	}
	if len(left) < len(s.records) {
		if err := s.save(ctx, left); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.calls, func(name string, c *call) bool {
		_, recorded := s.records[name]
		return !recorded && !exists(name) && !c.isRunning()
	})
	return nil
}

// again returns when the next answer has to be renewed, at most a duration.
func (s *provisions) again(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if _, after := c.answer(); after >= 0 {
			most = min(most, after)
		}
	}
	return most
}
