//go:build !linux

package linux

import (
	"context"
	"net"
)

// Node is not available on this system.
type Node struct{}

// Open returns the reason.
func Open(opts Options) (*Node, error) { return nil, opts.check() }

// HostAddress returns nil.
func (n *Node) HostAddress() net.IP { return nil }

// Address returns nil.
func (n *Node) Address() net.IP { return nil }

// PodNetwork returns "".
func (n *Node) PodNetwork() string { return "" }

// Close does nothing.
func (n *Node) Close() error { return nil }

// Run does nothing.
func (n *Node) Run(context.Context, Cluster) error { return nil }
