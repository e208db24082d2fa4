package tenants

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
)

// setFilter has the kernel drop what arrives at a socket from some addresses, in
// the place of those of the call before.
func setFilter(socket *net.UDPConn, sources []netip.Addr) error {
	program, err := bpf.Assemble(without(sources))
	if err != nil {
		return fmt.Errorf("assemble a filter: %w", err)
	}
	if err := ipv4.NewPacketConn(socket).SetBPF(program); err != nil { // for both families
		return fmt.Errorf("set the filter of a socket: %w", err)
	}
	return nil
}

// Offsets in a packet, for a filter of the kernel.
const (
	// ipHeader is that of the packet's IP header.
	ipHeader = 0xfff0_0000
	// source4 and source6 are those of the source's address in it.
	source4, source6 = 12, 8
)

// without returns a filter that drops packets from some addresses.
func without(sources []netip.Addr) []bpf.Instruction {
	four, six := dropFrom(sources, netip.Addr.Is4, source4), dropFrom(sources, netip.Addr.Is6, source6)
	return slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: ipHeader, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(six))}, //nolint:gosec // a few hundred
	}, six, four)
}

// dropFrom returns the part of a filter for addresses of a family, which are at
// an offset of the header.
func dropFrom(sources []netip.Addr, isOfFamily func(netip.Addr) bool, offset uint32) []bpf.Instruction {
	const size = 4
	var filter []bpf.Instruction
	for _, source := range sources {
		if !isOfFamily(source) {
			continue
		}
		words := slices.Collect(slices.Chunk(source.AsSlice(), size))
		for i, word := range words {
			differs := 2*(len(words)-i) - 1 // to the instruction after the next one that drops
			filter = append(filter,
				bpf.LoadAbsolute{Off: ipHeader + offset + uint32(size*i), Size: size},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(word), SkipTrue: uint8(differs)}) //nolint:gosec // 7 at most
		}
		filter = append(filter, bpf.RetConstant{Val: 0})
	}
	return append(filter, bpf.RetConstant{Val: 0xffff}) // the greatest length of a packet
}
