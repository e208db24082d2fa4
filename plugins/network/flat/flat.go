// Package flat is the provider of networks of type flat: the network of the
// super cluster, of which nothing has to be made.
package flat

import (
	"context"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
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

// Ensure reports each network as ready.
func (provider) Ensure(context.Context, network.Network) (network.State, error) {
	return network.State{Ready: true}, nil
}

// Delete is not called.
func (provider) Delete(context.Context, network.Network) (bool, error) { return true, nil }

// PreparePod is not called.
func (provider) PreparePod(context.Context, network.Pod) (network.Attachment, error) {
	return network.Attachment{Ready: true}, nil
}

// ReleasePod is not called.
func (provider) ReleasePod(context.Context, network.Pod) (bool, error) { return true, nil }
