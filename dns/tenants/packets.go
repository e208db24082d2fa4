package tenants

import (
	"context"
	"net"
	"net/netip"

	"github.com/miekg/dns"
)

// packets is the UDP socket of a tenant's port. It reads queries at the tenant's
// rate: while the tenant is over it, the kernel drops what arrives, at no cost
// for others. Other tenants' queries are dropped before they are parsed, and are
// not charged to the tenant.
type packets struct {
	*net.UDPConn

	ctx       context.Context //nolint:containedctx // the library's readers have none
	admission *admission
	floods    floods
}

func newPackets(ctx context.Context, conn *net.UDPConn, a *admission) *packets {
	return &packets{UDPConn: conn, ctx: ctx, admission: a, floods: floods{socket: conn}}
}

// ReadFrom reads the next query that is not another tenant's.
func (p *packets) ReadFrom(buffer []byte) (int, net.Addr, error) {
	for {
		n, from, err := p.ReadFromUDPAddrPort(buffer)
		p.floods.expire()
		if err != nil {
			return n, nil, err
		}
		address := plain(from.Addr())
		holder := p.admission.holder(address)
		if !p.admission.isForeign(holder) {
			return n, &client{net.UDPAddrFromAddrPort(from), holder}, p.admission.pace.Wait(p.ctx)
		}
		p.floods.note(address)
	}
}

// WriteTo sends an answer to a client.
func (p *packets) WriteTo(answer []byte, to net.Addr) (int, error) {
	if c, ok := to.(*client); ok {
		to = c.UDPAddr
	}
	return p.UDPConn.WriteTo(answer, to)
}

// client is the address of a UDP client with its holder when the query was
// read, which is not looked up again.
type client struct {
	*net.UDPAddr

	holder Holder
}

// clientWriter answers a client. For plugins, its address is that of the socket.
type clientWriter struct {
	dns.ResponseWriter

	address *net.UDPAddr
}

// RemoteAddr returns the address of the client.
func (w *clientWriter) RemoteAddr() net.Addr { return w.address }

// addressOf returns the address of a client; an invalid one if it has none.
func addressOf(of net.Addr) netip.Addr {
	if at, ok := of.(interface{ AddrPort() netip.AddrPort }); ok {
		return plain(at.AddrPort().Addr())
	}
	return netip.Addr{}
}

// plain returns an address as the directory has it.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
