package policies

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"go4.org/netipx"
)

const (
	tableName = "node-policies"
	// bufferSize fits a whole filter, which the kernel accepts or rejects
	// atomically.
	bufferSize = 16 << 20
	// chunk is a number of addresses that certainly fits into one message.
	chunk = 500

	// Offsets in an IPv4 header, and in the headers of all protocols with
	// ports.
	sourceOffset, destinationOffset, portOffset = 12, 16, 2
	addressLen, portLen                         = 4, 2
	// register is the register with the operand of comparisons.
	register = 1
)

var protocols = map[corev1.Protocol]byte{
	corev1.ProtocolTCP: unix.IPPROTO_TCP, corev1.ProtocolUDP: unix.IPPROTO_UDP, corev1.ProtocolSCTP: unix.IPPROTO_SCTP,
}

// table is the filter as it is sent to the kernel.
type table struct {
	conn *nftables.Conn
	*nftables.Table
	// sets has the sets of the table by their elements.
	sets map[string]*nftables.Set
	err  error
}

// Check returns an error if the kernel lacks a feature that this package needs.
func Check() error {
	conn, err := nftables.New()
	if err == nil {
		_, err = conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	}
	if err != nil {
		return fmt.Errorf("the kernel has no nftables, which NetworkPolicies need: modprobe nf_tables: %w", err)
	}
	return nil
}

// install replaces the filter in the kernel, in the network namespace with a
// path, or in that of the thread. Established connections are kept.
func install(f Filter, namespace string) error {
	options := []nftables.ConnOption{nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(bufferSize), c.SetReadBuffer(bufferSize))
	})}
	if namespace != "" {
		file, err := os.Open(namespace)
		if err != nil {
			return fmt.Errorf("open the network namespace: %w", err)
		}
		defer func() { _ = file.Close() }()
		options = append(options, nftables.WithNetNSFd(int(file.Fd())))
	}
	conn, err := nftables.New(options...)
	if err != nil {
		return fmt.Errorf("connect to the kernel's nftables: %w", err)
	}
	t := &table{conn: conn, Table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: tableName}, sets: map[string]*nftables.Set{}}
	conn.AddTable(t.Table) // a table must exist to be deleted
	conn.DelTable(t.Table)
	conn.AddTable(t.Table)
	t.fill(f)
	if t.err != nil {
		return fmt.Errorf("write the packet filter: %w", t.err)
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("install the packet filter: %w", err)
	}
	return nil
}

func (t *table) fill(f Filter) {
	// Runs before kube-proxy's chains of the same hook, but after these have
	// chosen a pod for a connection to a Service.
	forward := t.conn.AddChain(&nftables.Chain{
		Table: t.Table, Name: "forward", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityMangle,
	})
	t.rule(forward, connected(), verdict(expr.VerdictAccept))
	t.rule(forward, t.itself(slices.Concat(f.Ingress.Isolated, f.Egress.Isolated)), verdict(expr.VerdictAccept))
	for _, half := range []struct {
		name      string
		direction Direction
		pod, peer uint32
	}{
		{"egress", f.Egress, sourceOffset, destinationOffset},
		{"ingress", f.Ingress, destinationOffset, sourceOffset},
	} {
		chain := t.conn.AddChain(&nftables.Chain{Table: t.Table, Name: half.name})
		for _, a := range half.direction.Allowed {
			t.rule(chain, t.within(half.pod, a.Pods), t.within(half.peer, a.Peers), leadingTo(a.Port), verdict(expr.VerdictReturn))
		}
		t.rule(chain, t.within(half.pod, single(half.direction.Isolated)), verdict(expr.VerdictDrop))
		t.rule(forward, []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: half.name}})
	}
}

func (t *table) rule(chain *nftables.Chain, parts ...[]expr.Any) {
	t.conn.AddRule(&nftables.Rule{Table: t.Table, Chain: chain, Exprs: slices.Concat(parts...)})
}

func verdict(kind expr.VerdictKind) []expr.Any { return []expr.Any{&expr.Verdict{Kind: kind}} }

// connected matches packets of connections that were allowed when they were
// new.
func connected() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: register},
		&expr.Bitwise{
			SourceRegister: register, DestRegister: register, Len: addressLen,
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED), Xor: make([]byte, addressLen),
		},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: make([]byte, addressLen)},
	}
}

// within matches packets that have one of these addresses at an offset.
func (t *table) within(offset uint32, addresses []netipx.IPRange) []expr.Any {
	if len(addresses) == 1 && addresses[0] == netipx.RangeOfPrefix(everywhere) {
		return nil
	}
	set := t.set(nftables.TypeIPAddr, true, bounds(addresses))
	return []expr.Any{
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addressLen},
		&expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID},
	}
}

// itself matches packets of pods that reach themselves through a Service, which
// no policy may deny.
func (t *table) itself(pods []netip.Addr) []expr.Any {
	pairs := make([]nftables.SetElement, 0, len(pods))
	for _, pod := range sorted(pods) {
		pairs = append(pairs, nftables.SetElement{Key: slices.Concat(pod.AsSlice(), pod.AsSlice())})
	}
	set := t.set(nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr), false, pairs)
	return []expr.Any{
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: sourceOffset, Len: 2 * addressLen},
		&expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID},
	}
}

// set returns the set with these elements. It creates it if necessary.
func (t *table) set(of nftables.SetDatatype, interval bool, elements []nftables.SetElement) *nftables.Set {
	content := fmt.Sprint(of.Name, elements)
	if set := t.sets[content]; set != nil {
		return set
	}
	set := &nftables.Set{
		Table: t.Table, Name: fmt.Sprint("set", len(t.sets)), KeyType: of, Interval: interval, Concatenation: !interval,
	}
	t.sets[content] = set
	t.keep(t.conn.AddSet(set, nil))
	for part := range slices.Chunk(elements, chunk) {
		t.keep(t.conn.SetAddElements(set, part))
	}
	return set
}

// keep keeps the first error.
func (t *table) keep(err error) {
	if t.err == nil {
		t.err = err
	}
}

// leadingTo matches packets to a port.
func leadingTo(port Port) []expr.Any {
	if port == (Port{}) {
		return nil
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{protocols[port.Protocol]}},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: portOffset, Len: portLen},
		&expr.Cmp{Op: expr.CmpOpGte, Register: register, Data: binary.BigEndian.AppendUint16(nil, port.From)},
		&expr.Cmp{Op: expr.CmpOpLte, Register: register, Data: binary.BigEndian.AppendUint16(nil, port.To)},
	}
}

// bounds returns ranges as elements of a set in the kernel: the start of each,
// and the first value after it.
func bounds(ranges []netipx.IPRange) []nftables.SetElement {
	var all []nftables.SetElement
	for _, r := range ranges {
		all = append(all, nftables.SetElement{Key: r.From().AsSlice()})
		if after := r.To().Next(); after.IsValid() {
			all = append(all, nftables.SetElement{Key: after.AsSlice(), IntervalEnd: true})
		}
	}
	return all
}

// single returns addresses as ranges.
func single(addresses []netip.Addr) []netipx.IPRange {
	var b netipx.IPSetBuilder
	for _, address := range addresses {
		b.Add(address)
	}
	set, err := b.IPSet()
	if err != nil {
		return nil // the addresses are valid
	}
	return set.Ranges()
}
