package provisioner

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// leastIdle is the least of --sleep-after-idle, as in the API.
const leastIdle = 10 * time.Second

// TenantOptions are the settings of a program for the control planes that it
// hosts.
type TenantOptions struct {
	// TenantLimits bound what each tenant's control plane stores.
	TenantLimits TenantLimits
	// TenantIsolation is that of tenants' control planes whose VirtualClusters
	// have no spec.controlPlane.isolation.
	TenantIsolation string
	// SleepAfterIdle is the time without use after which a tenant's control
	// plane sleeps, unless its spec says otherwise; 0 for never.
	SleepAfterIdle time.Duration
	// TenantEgress are the networks outside of the super cluster that hosted
	// tenants' apiservers may connect to.
	TenantEgress []string
}

// DefaultTenantOptions are the settings of which nothing else is known.
func DefaultTenantOptions() TenantOptions {
	return TenantOptions{TenantLimits: defaultTenantLimits(), TenantIsolation: string(tenancyv1alpha1.IsolationShared)}
}

// AddFlags adds a flag for each setting.
func (o *TenantOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.TenantEgress, "tenant-egress-cidr", o.TenantEgress,
		"networks outside of the super cluster that tenants' apiservers may connect to, for webhooks and aggregated APIs; none by default")
	flags.DurationVar(&o.SleepAfterIdle, "sleep-after-idle", o.SleepAfterIdle,
		"time without use after which a tenant's control plane sleeps, unless its spec says otherwise; 0 for never")
	flags.StringVar(&o.TenantIsolation, "tenant-isolation", o.TenantIsolation,
		"what tenants' apiservers share unless spec.controlPlane.isolation says it: Shared is one handler chain for all, Dedicated one each")
	o.TenantLimits.addFlags(flags)
}

// Validate says which settings make no sense.
func (o *TenantOptions) Validate() error {
	if o.SleepAfterIdle != 0 && o.SleepAfterIdle < leastIdle {
		return fmt.Errorf("--sleep-after-idle is %s: it must be %s at least, or 0 for never", o.SleepAfterIdle, leastIdle)
	}
	const dedicated, shared = tenancyv1alpha1.IsolationDedicated, tenancyv1alpha1.IsolationShared
	if isolation := tenancyv1alpha1.Isolation(o.TenantIsolation); isolation != dedicated && isolation != shared {
		return fmt.Errorf("--tenant-isolation is %q: it must be %s or %s", isolation, dedicated, shared)
	}
	if _, err := egress.ParseOutside(o.TenantEgress); err != nil {
		return fmt.Errorf("--tenant-egress-cidr: %w", err)
	}
	return o.TenantLimits.validate()
}

// HostedOptions returns the options of a provisioner with an egress policy.
func (o *TenantOptions) HostedOptions(policy *egress.Policy, kubeletCA []byte, metrics *Metrics) Options {
	return Options{
		KubeletCA: kubeletCA, Network: policy.For, Limits: o.TenantLimits.limits(),
		Isolation: tenancyv1alpha1.Isolation(o.TenantIsolation),
		Sleep:     SleepOptions{AfterIdle: o.SleepAfterIdle, Metrics: metrics},
	}
}

// EgressPolicy says what tenants' apiservers may connect to. It follows the
// super cluster's pods and nodes until ctx ends. agent is where they reach
// vn-agent, empty if they do not. The internal networks are those of the super
// cluster's pods and Services.
func (o *TenantOptions) EgressPolicy(
	ctx context.Context, super *rest.Config, agent string, internal []string, registerer prometheus.Registerer,
) (*egress.Policy, error) {
	client, err := kubernetes.NewForConfig(super)
	if err != nil {
		return nil, fmt.Errorf("make a client for pods and nodes: %w", err)
	}
	directory, err := egress.WatchSuperCluster(ctx, client)
	if err != nil {
		return nil, err
	}
	policy, err := egress.NewPolicy(o.TenantEgress, internal)
	if err != nil {
		return nil, err
	}
	policy.Directory, policy.Agent = directory, agent
	policy.Metrics, err = egress.NewMetrics(registerer)
	return policy, err
}
