package app

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
)

// Options are the settings of a syncer.
type Options struct {
	// Workers is how many objects are worked on at a time.
	Workers int
	// TenantCap is how many of them may be one tenant's.
	TenantCap int
	// Timeout is how long the work on one object may take.
	Timeout time.Duration
	// MetricsAddress and HealthAddress are where metrics and health checks are served; "0" means nowhere.
	MetricsAddress, HealthAddress string
	// LeaderElect has one of several syncers work at a time, by a lease in LeaderElectNamespace.
	LeaderElect          bool
	LeaderElectNamespace string
	// Logger is where the syncer logs.
	Logger logr.Logger
	// Registerer is where the syncer's metrics go.
	Registerer prometheus.Registerer
}

// DefaultOptions are the settings of a syncer of which nothing else is known.
func DefaultOptions() Options {
	return Options{
		Workers:              32,
		TenantCap:            fairqueue.DefaultCap,
		Timeout:              10 * time.Second,
		MetricsAddress:       "0",
		HealthAddress:        "0",
		LeaderElectNamespace: "vc-system",
		Logger:               logr.Discard(),
		Registerer:           metrics.Registry,
	}
}

// AddFlags adds a flag for each setting.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.Workers, "workers", o.Workers, "how many objects are worked on at a time, of all tenants together")
	flags.IntVar(&o.TenantCap, "tenant-cap", o.TenantCap, "how many objects of one tenant are worked on at a time")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long the work on one object may take before it is tried again")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "where metrics are served, such as 127.0.0.1:8080; 0 for nowhere")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress, "where /healthz and /readyz are served; 0 for nowhere")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "let one of several syncers work at a time")
	flags.StringVar(&o.LeaderElectNamespace, "leader-elect-namespace", o.LeaderElectNamespace, "the namespace of the lease for --leader-elect")
}

// Validate says which settings make no sense.
func (o *Options) Validate() error {
	var errs []error
	if o.Workers < 1 {
		errs = append(errs, errors.New("--workers must be at least 1"))
	}
	if o.TenantCap < 1 {
		errs = append(errs, errors.New("--tenant-cap must be at least 1"))
	}
	if o.Timeout < time.Second {
		errs = append(errs, errors.New("--timeout must be at least 1s"))
	}
	return errors.Join(errs...)
}
