// Package flat is the provider of networks of type flat: the network of the
// super cluster, of which nothing has to be made.
package flat

import (
	"context"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// Registration returns the registration of the provider.
func Registration() network.Registration {
	return network.Registration{
		Type: networkv1.TypeFlat, Passive: true,
		New: func(network.Environment) (network.Provider, error) { return provider{}, nil },
	}
}

type provider struct{}

// Ensure rejects networks with ranges of Service addresses, which the network of
// the super cluster does not have.
func (provider) Ensure(_ context.Context, n network.Network) (network.State, error) {
	if n.Spec.Service != nil && len(n.Spec.Service.CIDRs) > 0 {
		return network.State{}, &plugins.RejectionError{
			Reason:  networkv1.ReasonServiceRangesUnsupported,
			Message: "networks of type flat have no ranges of Service addresses of their own; remove spec.service.cidrs",
		}
	}
	return network.State{Ready: true}, nil
}

// Delete has nothing to delete.
func (provider) Delete(context.Context, network.Network) (bool, error) { return true, nil }
