package tenants

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

// Name implements plugin.Handler.
func (*tenantsPlugin) Name() string { return Listeners }

// Ready reports whether tenants are answered, for the plugin ready.
func (p *tenantsPlugin) Ready() bool { return p.listeners.opened.Load() }

// ServeDNS passes on what arrives at the port of the Corefile.
func (p *tenantsPlugin) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(p.Name(), p.Next, ctx, w, r)
}

// namesHandler answers with the names that the client of a query sees.
type namesHandler struct {
	Next plugin.Handler
}

// Name implements plugin.Handler.
func (*namesHandler) Name() string { return Names }

// ServeDNS answers for the tenant of the context, with the names of the network of
// the client. A query without a tenant is refused, also for names outside: it is no
// tenant's.
func (h *namesHandler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	t, ok := ctx.Value(tenantKey{}).(*tenant)
	if !ok {
		return dns.RcodeRefused, nil
	}
	names := t.names
	names.APIConn, names.Next = t.view.of(addressOf(w.RemoteAddr())), h.Next
	return names.ServeDNS(ctx, w, r)
}
