package front

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/gateway/tenants"
)

// passTo returns the tenant to whose apiserver a connection is passed as it is,
// by its TLS server name; nil if the gateway serves the connection itself, as it
// does for all names in its own certificate.
func (s *Server) passTo(serverName string) *tenants.Tenant {
	index, domain := s.Handler.Index, s.Handler.Domain
	if label := resolve.DirectLabel(serverName, domain); label != "" {
		entry, _ := index.Find(label)
		if tenant := index.ByKey(entry.Key); tenant != nil && tenant.TakesConnections() {
			return tenant
		}
		return nil
	}
	tenant := index.ByServerName(serverName)
	if tenant == nil || resolve.IsBelow(serverName, domain) || s.isOwn(serverName) {
		return nil
	}
	return tenant
}

// isOwn reports whether the certificate of the gateway is valid for a name.
func (s *Server) isOwn(serverName string) bool {
	certificate, err := s.Certificate(&tls.ClientHelloInfo{ServerName: serverName})
	return err == nil && certificate != nil && certificate.Leaf != nil && certificate.Leaf.VerifyHostname(serverName) == nil
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
