// Package component is what the binaries have in common: flags, the client
// configuration of the super cluster, logs, leader election, metrics and
// health.
package component

import (
	"cmp"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/virtualcluster/virtualcluster/internal/version"
)

// off turns a listener of controller-runtime off.
const off = "0"

// Options say how a program runs. The zero value is good for one inside another
// process: no ports, no leader election.
type Options struct {
	// LeaderElect lets one of several replicas work at a time.
	LeaderElect bool
	// LeaderElectNamespace holds the Lease of the leader; by default the
	// namespace that the program runs in.
	LeaderElectNamespace string
	// MetricsBindAddress is the address of the metrics, served over HTTPS to
	// users that the super cluster authorizes; empty or 0 disables them.
	MetricsBindAddress string
	// HealthProbeBindAddress serves /healthz and /readyz; empty or 0 for not at
	// all.
	HealthProbeBindAddress string
	// PprofBindAddress serves profiles of the process under /debug/pprof/
	// without authentication; empty or 0 disables it.
	PprofBindAddress string
	// Logger is where the program logs to.
	Logger logr.Logger
}

// Defaults are the options of a program that has a process of its own.
func Defaults() Options { return Options{HealthProbeBindAddress: ":8081"} }

// AddFlags binds the options to flags; what they hold is the flags' default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.AddEndpointFlags(flags)
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "let one of several replicas work at a time")
	flags.StringVar(&o.LeaderElectNamespace, "leader-elect-namespace", o.LeaderElectNamespace,
		"namespace of the leader's Lease (default: the namespace that the program runs in)")
}

// AddEndpointFlags binds all but leader election, for a program all of whose
// replicas work.
func (o *Options) AddEndpointFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"address that serves metrics over HTTPS to authorized clients, such as :8443; 0 turns it off")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"address that serves /healthz and /readyz, such as :8081; 0 turns it off")
	flags.StringVar(&o.PprofBindAddress, "pprof-bind-address", o.PprofBindAddress,
		"address that serves profiles under /debug/pprof/ without authentication, such as 127.0.0.1:6060; 0 turns it off")
}

// Manager returns controller-runtime's options for the program of that name.
func (o *Options) Manager(name string, scheme *runtime.Scheme) manager.Options {
	return manager.Options{
		Scheme:                        scheme,
		Logger:                        o.Logger,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              name,
		LeaderElectionNamespace:       o.LeaderElectNamespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        cmp.Or(o.HealthProbeBindAddress, off),
		PprofBindAddress:              cmp.Or(o.PprofBindAddress, off),
		Metrics: metricsserver.Options{
			BindAddress:    cmp.Or(o.MetricsBindAddress, off),
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		Controller: config.Controller{
			SkipNameValidation: new(true), // a process may hold several managers, as tests do
			// The priority queue of controller-runtime 0.24 can block at its
			// shutdown with its lock held, and with it the end of the program:
			// https://github.com/kubernetes-sigs/controller-runtime/issues/3538
			UsePriorityQueue: new(false),
		},
	}
}

// ClientConfig is the configuration of the super cluster's clients. It turns
// client-side rate limits off: the super cluster's priority and fairness is the
// better judge.
func ClientConfig(superCluster *rest.Config, name string) *rest.Config {
	c := rest.AddUserAgent(rest.CopyConfig(superCluster), name+"/"+version.String())
	c.QPS = -1
	// Warnings about deprecated fields of tenants' objects do not help the
	// readers of this log, who cannot change them.
	c.WarningHandler = rest.NoWarnings{}
	return c
}

// Checker is the part of a manager that health checks are added to.
type Checker interface {
	// AddHealthzCheck adds a check of whether the process lives.
	AddHealthzCheck(name string, check healthz.Checker) error
	// AddReadyzCheck adds a check of whether it can work.
	AddReadyzCheck(name string, check healthz.Checker) error
}

// AddChecks adds what tells that the process answers.
func AddChecks(mgr Checker) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add readiness check: %w", err)
	}
	return nil
}
