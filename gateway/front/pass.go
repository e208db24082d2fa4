package front

import (
	"context"
	"net"
	"sync"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
)

// passTo returns the tenant to whose apiserver a connection is passed as it is,
// by its TLS server name; nil if the gateway serves the connection itself.
func (h *Handler) passTo(serverName string) *tenants.Tenant {
	if label := resolve.DirectLabel(serverName, h.Domain); label != "" {
		entry, _ := h.Index.Find(label)
		if tenant := h.Index.ByKey(entry.Key); tenant != nil && tenant.Converted == nil {
			return tenant
		}
		return nil
	}
	if resolve.IsBelow(serverName, h.Domain) {
		return nil // whatever an External control plane calls itself
	}
	return h.Index.ByServerName(serverName)
}

// pass passes a connection on, unless there are too many, and closes it.
func (h *Handler) pass(ctx context.Context, conn net.Conn, to *tenants.Tenant) {
	done, ok := h.passed.take(to.Key, h.Limits)
	if !ok {
		h.Metrics.passRejected.Inc()
		_ = conn.Close()
		return
	}
	defer done()
	h.Metrics.passThrough.Inc()
	defer h.Metrics.passThrough.Dec()
	to.Way.Pass(ctx, conn)
}

// passed counts the connections that are passed on, of all tenants and of each
// that has any.
type passed struct {
	mu    sync.Mutex
	total int
	of    map[string]int
}

// take counts a connection until done is called. It reports false for one too
// many.
func (p *passed) take(tenant string, limits Limits) (done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total >= limits.Passed || p.of[tenant] >= limits.PassedPerTenant {
		return nil, false
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.total++
	p.of[tenant]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.total--
		if p.of[tenant]--; p.of[tenant] == 0 {
			delete(p.of, tenant)
		}
	}, true
}
