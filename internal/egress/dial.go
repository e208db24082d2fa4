package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

const (
	// dialTimeout and keepAlive are those of apiservers.
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Purpose is why an apiserver opens a connection.
type Purpose string

// Purposes, also the values of a label of the metric.
const (
	// Kubelets answer logs, exec, attach, port-forward, and the proxy to a
	// node.
	Kubelets Purpose = "kubelet"
	// APIServices are aggregated APIs.
	APIServices Purpose = "apiservice"
	// Webhooks are those of admission and of conversion.
	Webhooks Purpose = "webhook"
	// Proxies are the proxies to pods, Services, and other ports of nodes.
	Proxies Purpose = "proxy"
	// Itself is the apiserver, for webhooks that it serves.
	Itself Purpose = "itself"
)

// Network provides the dialers of an apiserver.
type Network interface {
	// Dialer returns the dialer for a purpose.
	Dialer(purpose Purpose) Dial
}

// Unrestricted is the network of an apiserver whose users are the platform's
// admins: it connects to everything.
type Unrestricted struct{}

// Dialer returns a dialer that connects to everything.
func (Unrestricted) Dialer(Purpose) Dial { return newDialer().DialContext }

// Closed is the network of an apiserver that connects to nothing.
type Closed struct{}

// Dialer returns a dialer that refuses every connection.
func (Closed) Dialer(Purpose) Dial {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, &RefusedError{Address: address, Reason: Outside}
	}
}

// For returns the network of a tenant's apiserver, by the cluster key.
func (p *Policy) For(tenant string) Network { return network{policy: p, tenant: tenant} }

// network is the network of one tenant's apiserver.
type network struct {
	policy *Policy
	tenant string
}

// Dialer returns the dialer for a purpose.
func (n network) Dialer(purpose Purpose) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := n.dial(ctx, purpose, network, address)
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			n.policy.Metrics.refused(purpose, refused.Reason)
			return nil, &RefusedError{Address: address, Reason: refused.Reason} // without what the address was resolved to
		}
		return conn, err
	}
}

func (n network) dial(ctx context.Context, purpose Purpose, network, address string) (net.Conn, error) {
	switch {
	case !strings.HasPrefix(network, "tcp"):
		return nil, &RefusedError{Reason: Reserved}
	case n.policy.Agent != "" && address == n.policy.Agent && (purpose == Kubelets || purpose == APIServices):
		return newDialer().DialContext(ctx, network, address)
	case purpose == Kubelets:
		return nil, &RefusedError{Reason: NoAgent}
	case !n.policy.mayResolve(address):
		return nil, &RefusedError{Reason: Unresolved}
	}
	return dialChecked(ctx, network, address, n.check, &RefusedError{Reason: Unresolved})
}

// mayResolve reports whether the host of an address is an IP address or may be
// resolved. Names are of hosts outside of the super cluster; if no network
// outside is allowed, the platform's DNS is not asked.
func (p *Policy) mayResolve(address string) bool {
	if len(p.Outside) > 0 {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}

func (n network) check(to netip.Addr) error {
	if reason := n.policy.decide(n.tenant, to); reason != "" {
		return &RefusedError{Reason: reason}
	}
	return nil
}

// dialChecked connects to an address if it passes a check. Each address that a
// name was resolved to is checked right before the connection, so that another
// answer of the DNS later changes nothing. For a name that cannot be resolved, the
// error is unresolved, like one of the check: tenants must not learn which names
// the platform's DNS knows.
func dialChecked(ctx context.Context, network, address string, check func(netip.Addr) error, unresolved error) (net.Conn, error) {
	dialer := newDialer()
	dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, _ := netip.ParseAddrPort(address) // an invalid one is reserved
		return check(to.Addr())
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if _, ok := errors.AsType[*net.DNSError](err); ok && ctx.Err() == nil {
		return nil, unresolved
	}
	return conn, err
}

func newDialer() *net.Dialer { return &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive} }

// RefusedError says that a connection was refused. Its text is for the tenant.
type RefusedError struct {
	// Address is the requested address, a name or an IP address with a port.
	Address string
	// Reason is for admins: it reveals what is at the address.
	Reason Reason
}

// Error says what the control plane may connect to. It does not reveal what is
// at the address.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("connect to %s: not allowed: a hosted control plane connects to running pods of its own cluster, "+
		"and to addresses that the platform's admin allows", e.Address)
}
