package network

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/panics"
)

// Registration describes a provider before a syncer creates it.
type Registration struct {
	// Type is the value of spec.type by which Networks ask for the provider: a DNS
	// label, such as vpc.
	Type string
	// Passive is set for a provider that has nothing of its own for networks and
	// pods: only Ensure is called then.
	Passive bool
	// New creates the provider, once, before the syncer connects to any cluster.
	// The syncer exits with the error that it returns. A provider with background
	// work is also a sigs.k8s.io/controller-runtime/pkg/manager.Runnable: its Start
	// is called when the syncer begins to work, in a goroutine that the syncer
	// waits for on shutdown.
	New func(Environment) (Provider, error)
}

// Environment is what the syncer provides to a provider.
type Environment struct {
	// Client writes to the super cluster. It has the permissions of the syncer's
	// service account; a provider that needs more has to bind a role of its own to
	// that account.
	Client client.Client
	// Changed causes Ensure to be called for a network whose state has changed, by
	// the key of its tenant and its name. It returns at once.
	Changed func(tenant, network string)
	// Logger is the logger of the provider.
	Logger logr.Logger
	// Registerer registers the provider's metrics.
	Registerer prometheus.Registerer
}

// Offer is a provider that was created by its registration.
type Offer struct {
	Provider

	Passive bool
}

// Make creates the providers of registrations by type.
func Make(env Environment, registrations ...Registration) (map[string]Offer, error) {
	offers := make(map[string]Offer, len(registrations))
	logger := env.Logger
	for _, r := range registrations {
		if wrong := validation.IsDNS1123Label(r.Type); len(wrong) > 0 {
			return nil, fmt.Errorf("type %q of networks: %s", r.Type, strings.Join(wrong, "; "))
		}
		if _, taken := offers[r.Type]; taken {
			return nil, fmt.Errorf("two providers offer networks of type %s: give one of them another type", r.Type)
		}
		env.Logger = logger.WithName(r.Type)
		provider, err := r.create(env)
		if err != nil {
			return nil, fmt.Errorf("create the provider of networks of type %s: %w", r.Type, err)
		}
		offers[r.Type] = Offer{provider, r.Passive}
	}
	return offers, nil
}

// create creates the provider.
func (r *Registration) create(env Environment) (p Provider, err error) {
	if r.New == nil {
		return nil, errors.New("it has no function New")
	}
	defer panics.Recover(&err)
	if p, err = r.New(env); err == nil && p == nil {
		err = errors.New("its New returns none")
	}
	return p, err
}
