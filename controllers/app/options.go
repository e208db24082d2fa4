// Package app is the vc-manager as a command and as a manager inside another process. Whoever composes it brings the
// provisioners.
package app

import (
	"fmt"

	"github.com/spf13/pflag"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/process"
)

// Options say how a manager runs. The zero value is good for one inside another process: no ports, no leader election.
type Options struct {
	// DefaultProvisioner is for VirtualClusters that name none. If empty, they have to.
	DefaultProvisioner tenancyv1alpha1.ProvisionerType
	process.Options
}

// AddFlags binds the options to flags; what they hold is the flags' default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar((*string)(&o.DefaultProvisioner), "default-provisioner", string(o.DefaultProvisioner),
		"provisioner of VirtualClusters whose spec names none (Native, Hosted or External)")
	o.Options.AddFlags(flags)
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
