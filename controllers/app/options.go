// Package app is the vc-manager as a command and as a manager inside another process. Whoever composes it brings the
// provisioners.
package app

import (
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Options say how a manager runs. The zero value is good for one inside another process: no ports, no leader election.
type Options struct {
	// DefaultProvisioner is for VirtualClusters that name none. If empty, they have to.
	DefaultProvisioner tenancyv1alpha1.ProvisionerType
	// LeaderElect lets one of several managers work at a time.
	LeaderElect bool
	// LeaderElectNamespace holds the Lease of the leader; by default the namespace that the manager runs in.
	LeaderElectNamespace string
	// MetricsBindAddress serves metrics over HTTPS to those whom the super cluster authorizes; empty or 0 for not at all.
	MetricsBindAddress string
	// HealthProbeBindAddress serves /healthz and /readyz; empty or 0 for not at all.
	HealthProbeBindAddress string
	// Logger is where the manager logs to.
	Logger logr.Logger
}

// AddFlags binds the options to flags; what they hold is the flags' default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar((*string)(&o.DefaultProvisioner), "default-provisioner", string(o.DefaultProvisioner),
		"provisioner of VirtualClusters whose spec names none (Native, Hosted or External)")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"let one of several managers work at a time")
	flags.StringVar(&o.LeaderElectNamespace, "leader-elect-namespace", o.LeaderElectNamespace,
		"namespace of the leader's Lease (default: the namespace that the manager runs in)")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"address that serves metrics over HTTPS to authorized clients, such as :8443; 0 turns it off")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"address that serves /healthz and /readyz, such as :8081; 0 turns it off")
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	switch o.DefaultProvisioner {
	case "", tenancyv1alpha1.ProvisionerNative, tenancyv1alpha1.ProvisionerHosted, tenancyv1alpha1.ProvisionerExternal:
		return nil
	default:
		return fmt.Errorf("--default-provisioner %q is unknown: it is one of Native, Hosted, External", o.DefaultProvisioner)
	}
}
