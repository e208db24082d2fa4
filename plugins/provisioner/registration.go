package provisioner

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// ErrDisabled is in the error of a [Registration.New] whose flags do not enable
// the provisioner: the program then runs without it.
var ErrDisabled = errors.New("disabled")

// Registration describes a provisioner before a manager creates it.
type Registration struct {
	// Name is the value of spec.provisioner by which VirtualClusters ask for it:
	// a word in camel case, such as Hosted.
	Name tenancyv1alpha1.ProvisionerType
	// Summary says in one line how the control planes run, for --help.
	Summary string
	// AddFlags adds the options of the provisioner to the flags of the command;
	// nil if it has none. To be different from those of other parts, their names
	// begin with a word for the provisioner.
	AddFlags func(*pflag.FlagSet)
	// New creates the provisioner, once, after the flags are parsed and before
	// the manager starts. Runnables are added to the manager. The manager exits
	// with the error that it returns, except one that wraps [ErrDisabled].
	//
	// Of Secrets, ConfigMaps and Namespaces, the cache of the manager has only
	// those that vc-manager makes for tenants; the manager's GetAPIReader reads
	// all others.
	New func(manager.Manager) (Provisioner, error)
}

// validName is the pattern of names, as in the schema of a VirtualCluster.
var validName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// validate says what is wrong with a registration.
func (r *Registration) validate() error {
	if !validName.MatchString(string(r.Name)) {
		return fmt.Errorf("provisioner %q: its name must be a word in camel case of at most 63 letters and digits, such as Hosted", r.Name)
	}
	if r.New == nil {
		return fmt.Errorf("provisioner %s has no function New", r.Name)
	}
	return nil
}

// Registry holds the provisioners that a manager offers, by name.
type Registry map[tenancyv1alpha1.ProvisionerType]Provisioner

// Make creates the provisioners of registrations. It returns why those that are
// disabled are not among them.
func Make(mgr manager.Manager, registrations ...Registration) (offered Registry, disabled []error, err error) {
	offered = Registry{}
	known := map[tenancyv1alpha1.ProvisionerType]bool{}
	for _, registration := range registrations {
		if err := registration.validate(); err != nil {
			return nil, nil, err
		}
		if known[registration.Name] {
			return nil, nil, fmt.Errorf("two provisioners have the name %s: give one of them another", registration.Name)
		}
		known[registration.Name] = true
		made, err := registration.New(mgr)
		switch {
		case errors.Is(err, ErrDisabled):
			disabled = append(disabled, fmt.Errorf("provisioner %s: %w", registration.Name, err))
		case err != nil:
			return nil, nil, fmt.Errorf("create provisioner %s: %w", registration.Name, err)
		case made == nil:
			return nil, nil, fmt.Errorf("create provisioner %s: its New returns none", registration.Name)
		default:
			offered[registration.Name] = made
		}
	}
	return offered, disabled, nil
}

// String returns the names of the provisioners in a fixed order.
func (r Registry) String() string {
	if len(r) == 0 {
		return "none"
	}
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
