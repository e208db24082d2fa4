//go:build !linux

package linux

import (
	"context"
	"net"
)

// Node does not exist on this system.
type Node struct{}

// Open says why.
func Open(opts Options) (*Node, error) { return nil, opts.check() }

// HostAddress is none.
func (n *Node) HostAddress() net.IP { return nil }

// Address is none.
func (n *Node) Address() net.IP { return nil }

// PodNetwork is none.
func (n *Node) PodNetwork() string { return "" }

// Close does nothing.
func (n *Node) Close() error { return nil }

// Run does nothing.
func (n *Node) Run(context.Context, Cluster) error { return nil }
