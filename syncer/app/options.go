package app

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
	"github.com/virtualcluster/virtualcluster/syncer/share"
)

// minTenantMemory is too little for any tenant, and more than what is meant without a unit.
const minTenantMemory = 1 << 20

// Options are the settings of a syncer.
type Options struct {
	// Workers is how many objects are worked on at a time.
	Workers int
	// SlowWorkers is how many more are worked on at a time, of tenants whose apiservers answer slowly.
	SlowWorkers int
	// TenantCap is how many of them may be one tenant's.
	TenantCap int
	// TenantMemory is how much of the syncer's memory the objects of one tenant may take.
	TenantMemory resource.Quantity
	// Timeout is how long the work on one object may take.
	Timeout time.Duration
	// NodeLinger is how long a virtual node is still shown after the tenant's last pod there went.
	NodeLinger time.Duration
	// Patrol is how often both sides of everything are compared.
	Patrol time.Duration
	// ShareTenants divides the tenants among several replicas, all of which work.
	ShareTenants bool
	// ShareNamespace holds the Leases of the replicas that share the tenants.
	ShareNamespace string
	// AgentAddress is the host and port at which tenants' apiservers reach vn-agent; empty if they do not.
	AgentAddress string
	// PodCIDRs are the ranges of the super cluster's pods.
	PodCIDRs []string
	component.Options
	// QuotaValidation has validators asked before copies are written. Without it, nothing of a plugin is called.
	QuotaValidation bool
	// QuotaValidators are the IDs of the plugins that are asked; empty is all that are not disabled.
	QuotaValidators []string
	// QuotaValidationTimeout is how long a validator may take for one object.
	QuotaValidationTimeout time.Duration
	// QuotaValidationFailOpen writes what a validator could not tell about. Otherwise that is refused.
	QuotaValidationFailOpen bool
	// QuotaRules is a file of rules for all tenants; empty for none.
	QuotaRules string
	// Limits are how many copies each tenant may have by resource, where they differ from [DefaultLimits] and the policy of the tenant says
	// nothing.
	Limits map[string]int64
	// Plugins are those of a program's own, beside the project's.
	Plugins []plugins.Registration
	// Registerer is where the syncer's metrics go.
	Registerer prometheus.Registerer
}

// DefaultOptions are the settings of a syncer of which nothing else is known. What is in flight beyond what apiservers can do at a time
// waits in them, where nobody is fair: so there are few workers, and a tenant that hangs or wants much has few of them.
func DefaultOptions() Options {
	return Options{
		Workers:     16,
		SlowWorkers: 128,
		TenantCap:   fairqueue.DefaultCap,
		Timeout:     10 * time.Second,
		NodeLinger:  time.Minute,
		Patrol:      time.Minute,
		Registerer:  metrics.Registry,

		TenantMemory: resource.MustParse("512Mi"),

		ShareNamespace:         share.Namespace,
		QuotaValidationTimeout: 2 * time.Second,
	}
}

// AddFlags adds a flag for each setting.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.Workers, "workers", o.Workers, "how many objects are worked on at a time, of all tenants together")
	flags.IntVar(&o.SlowWorkers, "slow-workers", o.SlowWorkers,
		"how many more objects are worked on at a time, of tenants whose apiservers answer much slower than the super cluster: "+
			"they wait for each other, and no other tenant waits for them")
	flags.IntVar(&o.TenantCap, "tenant-cap", o.TenantCap, "how many objects of one tenant are worked on at a time")
	flags.Var(quantity{&o.TenantMemory}, "tenant-memory", "how much of the syncer's memory the objects of one tenant may take; a tenant "+
		"that has more is not synced until it has less")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long the work on one object may take before it is tried again")
	flags.DurationVar(&o.NodeLinger, "node-linger", o.NodeLinger,
		"how long a virtual node is still shown to a tenant after its last pod there went")
	flags.DurationVar(&o.Patrol, "patrol", o.Patrol, "how often both sides of everything are compared, to mend what no event told of")
	flags.BoolVar(&o.ShareTenants, "share-tenants", o.ShareTenants,
		"divide the tenants among several replicas, all of which work, instead of electing a leader")
	flags.StringVar(&o.ShareNamespace, "share-namespace", o.ShareNamespace, "namespace of the Leases of the replicas that share the tenants")
	flags.StringVar(&o.AgentAddress, "vn-agent-address", o.AgentAddress,
		"host and port at which tenants' apiservers reach vn-agent, for logs and exec; virtual nodes have no address without it")
	flags.StringSliceVar(&o.PodCIDRs, "pod-cidr", o.PodCIDRs,
		"ranges of the super cluster's pods, all of them; without, NetworkPolicies let tenants' pods be reached from no address outside of it")
	flags.StringToInt64Var(&o.Limits, "default-limits", o.Limits,
		"how many objects in the super cluster a tenant may have whose spec.policy.limits says nothing, where it is not one of these: "+
			describeLimits(DefaultLimits())+"; * is every other resource, and a negative number no limit")
	o.addValidationFlags(flags)
	o.Options.AddFlags(flags)
}

func (o *Options) addValidationFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.QuotaValidation, "enable-quota-validation", o.QuotaValidation,
		"ask validators, such as that of spec.quota, before a tenant's objects go down")
	flags.StringSliceVar(&o.QuotaValidators, "quota-validators", o.QuotaValidators,
		"IDs of the validators that are asked (default: all that this program has)")
	flags.StringVar(&o.QuotaRules, "quota-rules", o.QuotaRules,
		"file of rules that the objects of all tenants have to meet, in the form of spec.quota.rules")
	flags.DurationVar(&o.QuotaValidationTimeout, "quota-validation-timeout", o.QuotaValidationTimeout,
		"how long a validator may take for one object")
	flags.BoolVar(&o.QuotaValidationFailOpen, "quota-validation-fail-open", o.QuotaValidationFailOpen,
		"let objects through while a validator panics, fails or does not answer; by default they are refused then")
}

// Validate says which settings make no sense.
func (o *Options) Validate() error {
	var errs []error
	if o.Workers < 1 {
		errs = append(errs, errors.New("--workers must be at least 1"))
	}
	if o.SlowWorkers < 1 {
		errs = append(errs, errors.New("--slow-workers must be at least 1"))
	}
	if o.TenantCap < 1 {
		errs = append(errs, errors.New("--tenant-cap must be at least 1"))
	}
	if o.TenantMemory.Value() < minTenantMemory {
		errs = append(errs, errors.New("--tenant-memory must be at least 1Mi"))
	}
	if o.Timeout < time.Second {
		errs = append(errs, errors.New("--timeout must be at least 1s"))
	}
	if o.QuotaValidation && (o.QuotaValidationTimeout <= 0 || o.QuotaValidationTimeout >= o.Timeout) {
		errs = append(errs, errors.New("--quota-validation-timeout must be more than 0 and less than --timeout"))
	}
	if o.QuotaRules != "" && (!o.QuotaValidation || len(o.QuotaValidators) > 0 && !slices.Contains(o.QuotaValidators, rules.ID)) {
		errs = append(errs, errors.New("--quota-rules needs --enable-quota-validation, and rules among --quota-validators if that is given"))
	}
	if o.Patrol < time.Second {
		errs = append(errs, errors.New("--patrol must be at least 1s"))
	}
	if o.ShareTenants && o.LeaderElect {
		errs = append(errs, errors.New("--share-tenants and --leader-elect exclude each other: all replicas work, or one of them"))
	}
	if o.ShareTenants && o.ShareNamespace == "" {
		errs = append(errs, errors.New("--share-namespace must name a namespace"))
	}
	if _, err := o.agent(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.podRanges(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// queue returns the limits of the queue.
func (o *Options) queue() fairqueue.Options {
	return fairqueue.Options{Cap: o.TenantCap, Workers: o.Workers, SlowWorkers: o.SlowWorkers, BackoffMax: retryMost}
}

// agent reads the address of vn-agent.
func (o *Options) agent() (resources.Agent, error) {
	if o.AgentAddress == "" {
		return resources.Agent{}, nil
	}
	host, port, err := addresses.SplitHostPort(o.AgentAddress)
	if err != nil {
		return resources.Agent{}, fmt.Errorf("--vn-agent-address: %w", err)
	}
	return resources.Agent{Host: host, Port: port}, nil
}

// logGaps tells the log what does not work with these settings, where tenants would notice it and an admin would look for the cause.
func (o *Options) logGaps() {
	if len(o.PodCIDRs) == 0 {
		o.Logger.Info("No --pod-cidr: what comes from outside the cluster, by node ports and load balancers, does not reach tenants' pods, but " +
			"through pods of your own, such as an Ingress controller's. Name all ranges of the super cluster's pods to let it in")
	}
}

// podRanges reads the ranges of the super cluster's pods.
func (o *Options) podRanges() (resources.PodRanges, error) {
	pods, err := resources.ParsePodRanges(o.PodCIDRs)
	if err != nil {
		return nil, fmt.Errorf("--pod-cidr: %w", err)
	}
	return pods, nil
}

// quantity is a flag that is written into a setting.
type quantity struct{ *resource.Quantity }

// Set reads the flag.
func (q quantity) Set(text string) (err error) {
	*q.Quantity, err = resource.ParseQuantity(text)
	return err
}

// Type is what the help shows as the flag's value.
func (quantity) Type() string { return "quantity" }
