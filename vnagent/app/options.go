package app

import (
	"errors"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/virtualcluster/virtualcluster/internal/component"
)

// Options are the settings of an agent.
type Options struct {
	// Address is where it serves the kubelet API.
	Address string
	// Listener serves instead of Address, for a program that has to know the
	// port before it starts an agent.
	Listener net.Listener
	// CertFile and KeyFile are the serving certificate and its key. They are
	// read again when they change.
	CertFile, KeyFile string
	// StreamsPerTenant is how many streams a tenant may have at a time.
	StreamsPerTenant int
	component.Options
	// Registerer is where the agent's metrics go.
	Registerer prometheus.Registerer
}

// DefaultOptions are the settings of an agent of which nothing else is known.
func DefaultOptions() Options {
	return Options{Address: ":10550", StreamsPerTenant: 500, Registerer: metrics.Registry}
}

// AddFlags adds a flag for each setting.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Address, "bind-address", o.Address, "address that serves the kubelet API to tenants' apiservers")
	flags.StringVar(&o.CertFile, "tls-cert-file", o.CertFile,
		"serving certificate in PEM, of an authority that tenants' apiservers verify kubelets by; read again when it changes")
	flags.StringVar(&o.KeyFile, "tls-private-key-file", o.KeyFile, "private key of the serving certificate in PEM")
	flags.IntVar(&o.StreamsPerTenant, "streams-per-tenant", o.StreamsPerTenant,
		"how many logs, execs, attachments and forwarded ports a tenant may have open at a time")
	o.AddEndpointFlags(flags)
}

// Validate says which settings make no sense.
func (o *Options) Validate() error {
	var errs []error
	if o.Address == "" && o.Listener == nil {
		errs = append(errs, errors.New("--bind-address is missing"))
	}
	if o.CertFile == "" || o.KeyFile == "" {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file must name the serving certificate and its key"))
	}
	if o.StreamsPerTenant < 1 {
		errs = append(errs, errors.New("--streams-per-tenant must be at least 1"))
	}
	return errors.Join(errs...)
}
