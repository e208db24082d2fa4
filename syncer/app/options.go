package app

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/plugins/quota"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/networks"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// minTenantMemory is less than any tenant needs, and more than a plausible
// number without a unit.
const minTenantMemory = 1 << 20

// Options configure a syncer.
type Options struct {
	// Workers is the number of objects that are reconciled concurrently.
	Workers int
	// SlowWorkers is the number of additional objects, of slow tenants, that
	// are reconciled concurrently.
	SlowWorkers int
	// TenantCap is the maximum number of objects of one tenant that are
	// reconciled concurrently.
	TenantCap int
	// TenantMemory is the maximum memory of one tenant's objects in the syncer.
	TenantMemory resource.Quantity
	// Timeout limits the reconcile of one object.
	Timeout time.Duration
	// NodeLinger is how long a virtual node is kept after the tenant's last pod
	// there was deleted.
	NodeLinger time.Duration
	// Patrol is the interval of comparing all objects of both sides.
	Patrol time.Duration
	// WakeInterval is the minimum time between two wakes of a tenant whose
	// control plane sleeps because of changes in the super cluster other than
	// the end of a pod.
	WakeInterval time.Duration
	// ShareTenants divides the tenants among several active replicas.
	ShareTenants bool
	// ShareNamespace is the namespace of the Leases of replicas that share the
	// tenants.
	ShareNamespace string
	// AgentAddress is the host and port of vn-agent for tenants' apiservers;
	// empty if they cannot reach it.
	AgentAddress string
	// PodCIDRs are the address ranges of the super cluster's pods.
	PodCIDRs []string
	// SharedDNS copies Services of type ExternalName for the DNS that tenants
	// share.
	SharedDNS bool
	// Networks gives tenants the API of networks.
	Networks bool
	// InternalCIDRs are the address ranges of the super cluster's nodes, control
	// planes and stores.
	InternalCIDRs []string
	// DefaultNetworkTemplate is a file with the default network of tenants; empty
	// for one of type flat.
	DefaultNetworkTemplate string
	component.Options
	// QuotaValidation enables validators. Without it, plugins are not called.
	QuotaValidation bool
	// QuotaValidators are the IDs of the enabled plugins; empty for all that
	// are not disabled.
	QuotaValidators []string
	// QuotaValidationTimeout limits the time of a validator for one object.
	QuotaValidationTimeout time.Duration
	// QuotaValidationFailOpen allows writes that a validator could not decide
	// about. By default they fail.
	QuotaValidationFailOpen bool
	// QuotaRules is a file with validation rules for all tenants; empty for
	// none.
	QuotaRules string
	// ConvertedWebhook is the Service of the webhook that validates the objects
	// of tenants without a control plane; empty for none.
	ConvertedWebhook types.NamespacedName
	// ConvertedWebhookBindAddress is the host and port where it listens.
	ConvertedWebhookBindAddress string
	// ConvertedWebhookAddress is the IP address at which apiservers reach this
	// replica. The replica that answers makes it the only one of the Service;
	// empty if the Service leads there otherwise.
	ConvertedWebhookAddress string
	// ConvertedObjects and ConvertedStorage are how many objects a tenant without a
	// control plane may have, and how many bytes, unless its VirtualCluster says
	// otherwise; 0 for no limit. It takes the webhook.
	ConvertedObjects int64
	ConvertedStorage resource.Quantity
	// Limits override [DefaultLimits] by resource. They apply to resources that
	// a tenant's policy does not limit.
	Limits map[string]int64
	// Extensions are those of the program.
	Extensions
	// Registerer registers the syncer's metrics.
	Registerer prometheus.Registerer
}

// DefaultOptions returns the default options. Requests beyond the concurrency
// of apiservers queue in the apiservers, outside fair scheduling: so there are
// few workers, and a tenant that hangs or has much work gets few of them.
func DefaultOptions() Options {
	return Options{
		Workers:     16,
		SlowWorkers: 128,
		TenantCap:   fairqueue.DefaultCap,
		Timeout:     10 * time.Second,
		NodeLinger:  time.Minute,
		Patrol:      time.Minute,

		WakeInterval: 10 * time.Minute,

		Registerer: metrics.Registry,

		TenantMemory: resource.MustParse("512Mi"),

		ShareNamespace:         replicasNamespace,
		QuotaValidationTimeout: 2 * time.Second,

		ConvertedWebhookBindAddress: ":9443",
		ConvertedObjects:            20000,
		ConvertedStorage:            resource.MustParse("64Mi"),
	}
}

// AddFlags adds a flag for each option.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.Workers, "workers", o.Workers, "number of objects that are reconciled concurrently, of all tenants")
	flags.IntVar(&o.SlowWorkers, "slow-workers", o.SlowWorkers,
		"number of additional objects that are reconciled concurrently, of tenants whose apiservers answer much slower than the super cluster: "+
			"they wait for each other, and other tenants do not wait for them")
	flags.IntVar(&o.TenantCap, "tenant-cap", o.TenantCap, "maximum number of objects of one tenant that are reconciled concurrently")
	flags.Var(quantity{&o.TenantMemory}, "tenant-memory", "maximum memory of one tenant's objects in the syncer; a tenant "+
		"that has more is not synced until it has less")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "time limit for the reconcile of one object")
	flags.DurationVar(&o.NodeLinger, "node-linger", o.NodeLinger,
		"how long a virtual node is kept after the tenant's last pod there was deleted")
	flags.DurationVar(&o.Patrol, "patrol", o.Patrol, "interval of comparing all objects of both sides")
	flags.DurationVar(&o.WakeInterval, "wake-interval", o.WakeInterval,
		"minimum time between two wakes of a tenant whose control plane sleeps because the status of its objects changes in the super cluster; "+
			"the end of a pod wakes it at once")
	flags.BoolVar(&o.ShareTenants, "share-tenants", o.ShareTenants,
		"divide the tenants among several active replicas, instead of electing a leader")
	flags.StringVar(&o.ShareNamespace, "share-namespace", o.ShareNamespace, "namespace of the Leases of the replicas that share the tenants")
	flags.StringVar(&o.AgentAddress, "vn-agent-address", o.AgentAddress,
		"host and port of vn-agent for tenants' apiservers, for logs and exec; virtual nodes have no address without it")
	flags.StringSliceVar(&o.PodCIDRs, "pod-cidr", o.PodCIDRs,
		"all address ranges of the super cluster's pods; without it, tenants' pods cannot be reached from outside of the cluster")
	flags.BoolVar(&o.SharedDNS, "shared-dns", o.SharedDNS,
		"tenants share vc-dns: copy Services of type ExternalName for it, in a form that other components do not resolve")
	flags.BoolVar(&o.Networks, "networks", o.Networks,
		"give tenants the API of networks, sync pods and Services with the label of their network, and keep networks apart")
	flags.StringSliceVar(&o.InternalCIDRs, "internal-cidr", o.InternalCIDRs,
		"all address ranges of the super cluster's nodes, control planes and stores, which pods in networks never reach; without it, "+
			"and without --pod-cidr, they reach nothing outside of the cluster")
	flags.StringVar(&o.DefaultNetworkTemplate, "default-network-template-path", o.DefaultNetworkTemplate,
		"file with the default network of tenants, as JSON in which {{.}} is the cluster key of the tenant (default: a network of type flat)")
	flags.StringToInt64Var(&o.Limits, "default-limits", o.Limits,
		"maximum numbers of a tenant's objects in the super cluster, unless its spec.policy.limits has others; defaults: "+
			describeLimits(DefaultLimits())+"; * is every other resource, and a negative number means no limit")
	o.addValidationFlags(flags)
	o.Options.AddFlags(flags)
}

func (o *Options) addValidationFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.QuotaValidation, "enable-quota-validation", o.QuotaValidation,
		"call validators, such as that of spec.quota, before a tenant's objects are synced down")
	flags.StringSliceVar(&o.QuotaValidators, "quota-validators", o.QuotaValidators,
		"IDs of the enabled validators (default: all of this program)")
	flags.StringVar(&o.QuotaRules, "quota-rules", o.QuotaRules,
		"file with validation rules for the objects of all tenants, in the format of spec.quota.rules")
	flags.DurationVar(&o.QuotaValidationTimeout, "quota-validation-timeout", o.QuotaValidationTimeout,
		"time limit for a validator for one object")
	flags.BoolVar(&o.QuotaValidationFailOpen, "quota-validation-fail-open", o.QuotaValidationFailOpen,
		"sync objects while a validator panics, fails or does not answer; by default they are not synced")
	component.NameVar(flags, &o.ConvertedWebhook, "converted-webhook-service",
		"Service in config/converted/webhook as NAMESPACE/NAME, of the webhook that calls validators for the objects of tenants without a "+
			"control plane; a certificate is made and renewed, in the Secret of the same name; empty for no webhook")
	flags.StringVar(&o.ConvertedWebhookBindAddress, "converted-webhook-bind-address", o.ConvertedWebhookBindAddress,
		"address where that webhook listens")
	flags.StringVar(&o.ConvertedWebhookAddress, "converted-webhook-pod-address", o.ConvertedWebhookAddress,
		"IP address at which apiservers reach this replica: of all replicas, the one that answers is behind the Service; "+
			"empty if the Service selects it")
	flags.Int64Var(&o.ConvertedObjects, "converted-objects", o.ConvertedObjects,
		"number of objects of all kinds that a tenant without a control plane may have, unless its spec.controlPlane.limits.objects says "+
			"otherwise; 0 for no limit")
	flags.Var(quantity{&o.ConvertedStorage}, "converted-storage",
		"bytes of all objects of a tenant without a control plane, unless its spec.controlPlane.limits.storage says otherwise; 0 for no limit")
}

// Validate returns an error for each invalid option.
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
	errs = append(errs, o.validateWebhook())
	if o.Patrol < time.Second {
		errs = append(errs, errors.New("--patrol must be at least 1s"))
	}
	if _, err := o.networks(); err != nil {
		errs = append(errs, err)
	}
	if o.ShareTenants && o.LeaderElect {
		errs = append(errs, errors.New("--share-tenants and --leader-elect are mutually exclusive: all replicas are active, or one of them"))
	}
	if o.ShareTenants && o.ShareNamespace == "" {
		errs = append(errs, errors.New("--share-namespace must name a namespace"))
	}
	if _, err := o.agent(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.outside(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// validateWebhook returns an error if the webhook cannot be served, or would not
// count what tenants have.
func (o *Options) validateWebhook() error {
	if o.ConvertedWebhook.Name != "" && (!o.QuotaValidation || len(o.QuotaValidators) > 0 && !slices.Contains(o.QuotaValidators, quota.ID)) {
		return errors.New("--converted-webhook-service needs --enable-quota-validation, and quota among --quota-validators if that is given")
	}
	if o.ConvertedObjects < 0 || o.ConvertedStorage.Sign() < 0 {
		return errors.New("--converted-objects and --converted-storage cannot be negative: 0 is no limit")
	}
	_, err := o.webhook(nil)
	return err
}

// queue returns the options of the queue.
func (o *Options) queue() fairqueue.Options {
	return fairqueue.Options{Cap: o.TenantCap, Workers: o.Workers, SlowWorkers: o.SlowWorkers, BackoffMax: retryMost}
}

// agent parses the address of vn-agent.
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

// networks returns the default network of tenants; nil if tenants have no
// networks.
func (o *Options) networks() (*networks.Template, error) {
	switch {
	case !o.Networks && o.DefaultNetworkTemplate != "":
		return nil, errors.New("--default-network-template-path needs --networks")
	case !o.Networks && len(o.InternalCIDRs) > 0:
		return nil, errors.New("--internal-cidr needs --networks")
	case !o.Networks:
		return nil, nil
	}
	template, err := networks.ReadTemplate(o.DefaultNetworkTemplate)
	if err != nil {
		return nil, fmt.Errorf("--default-network-template-path: %w", err)
	}
	return template, nil
}

// logGaps logs which features do not work with these options, for an admin who
// investigates a tenant's report.
func (o *Options) logGaps() {
	if len(o.PodCIDRs) == 0 {
		o.Logger.Info("No --pod-cidr: traffic from outside of the cluster, by node ports and load balancers, does not reach tenants' pods, " +
			"except through pods of the platform, such as an Ingress controller's. " +
			"Set it to all address ranges of the super cluster's pods to allow it")
	}
	if o.Networks && (len(o.PodCIDRs) == 0 || len(o.InternalCIDRs) == 0) {
		o.Logger.Info("No --internal-cidr or no --pod-cidr: tenants' pods reach nothing outside of the cluster, whatever spec.egress of their " +
			"networks is. Set them to all address ranges of the super cluster's nodes, control planes and stores, and of its pods")
	}
}

// outside parses the address ranges of the super cluster.
func (o *Options) outside() (resources.Outside, error) {
	pods, err := resources.ParseRanges(o.PodCIDRs)
	if err != nil {
		return resources.Outside{}, fmt.Errorf("--pod-cidr: %w", err)
	}
	internal, err := resources.ParseRanges(o.InternalCIDRs)
	if err != nil {
		return resources.Outside{}, fmt.Errorf("--internal-cidr: %w", err)
	}
	return resources.Outside{Pods: pods, Internal: internal}, nil
}

// quantity is a flag value for a resource quantity.
type quantity struct{ *resource.Quantity }

// Set implements pflag.Value.
func (q quantity) Set(text string) (err error) {
	*q.Quantity, err = resource.ParseQuantity(text)
	return err
}

// Type implements pflag.Value.
func (quantity) Type() string { return "quantity" }
