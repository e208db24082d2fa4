package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	netutils "k8s.io/utils/net"

	"github.com/virtualcluster/virtualcluster/config/servicecidr"
	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/nodes/simulated"
)

// The Service addresses of which tenants get parts: two million, 1024 for each
// of 2048 tenants.
const (
	defaultServicePool   = "10.64.0.0/11"
	defaultServicePrefix = 22
)

// servicePools returns the ranges of Service addresses that tenants may have:
// that of new tenants, and that of older versions.
func (o *Options) servicePools() []string {
	return append(o.newServicePools(), servicecidr.DefaultPool)
}

// newServicePools returns the ranges of which new tenants get parts, one of each
// IP family.
func (o *Options) newServicePools() []string {
	pools := []string{o.ManagerOptions.ServiceCIDRPool}
	if second := o.ManagerOptions.SecondaryServiceCIDRPool; second != "" {
		pools = append(pools, second)
	}
	return pools
}

// superSecondaryServiceCIDR is the range of IPv6 addresses of the super cluster's
// own Services, if tenants have some.
const superSecondaryServiceCIDR = "fd00:10:96::/112"

// machineNetworks returns the networks that this machine is in, those of nodes
// and of this machine alone among them: where the super cluster runs.
func machineNetworks() ([]string, error) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the networks of this machine: %w", err)
	}
	var networks []string
	for _, address := range interfaces {
		if network, err := netip.ParsePrefix(address.String()); err == nil {
			networks = append(networks, network.Masked().String())
		}
	}
	return networks, nil
}

// hasIPv6 reports whether tenants have Service addresses of IPv6.
func (o *Options) hasIPv6() bool {
	return slices.ContainsFunc(o.newServicePools(), netutils.IsIPv6CIDRString)
}

// validateServicePools says what is wrong with the Service addresses of tenants.
func (o *Options) validateServicePools() error {
	if _, err := netip.ParsePrefix(o.ManagerOptions.ServiceCIDRPool); err != nil {
		return fmt.Errorf("--service-cidr-pool is %q: it must be a network in CIDR notation, such as %s",
			o.ManagerOptions.ServiceCIDRPool, defaultServicePool)
	}
	if o.Nodes.Real && o.hasIPv6() {
		return errors.New("--service-cidr-pool and --secondary-service-cidr-pool: IPv6 is for simulated nodes, and the real node serves IPv4")
	}
	for _, text := range o.newServicePools() {
		pool, err := netip.ParsePrefix(text)
		if err != nil {
			continue // the manager says what is wrong
		}
		for _, used := range []string{hosted.DefaultServiceCIDR, superSecondaryServiceCIDR, simulated.PodNetwork} {
			if pool.Overlaps(netip.MustParsePrefix(used)) {
				return fmt.Errorf("the pool %s of Service addresses overlaps with %s, which the super cluster uses itself", pool, used)
			}
		}
	}
	return o.ManagerOptions.Validate()
}

// serveTenantAddresses has the super cluster serve pools of Service addresses
// beside its own, and keep them for tenants whose part they are in. Pools that
// were served before stay.
func serveTenantAddresses(ctx context.Context, super *rest.Config, pools ...string) error {
	client, err := kubernetes.NewForConfig(super)
	if err != nil {
		return fmt.Errorf("make a client for Service addresses: %w", err)
	}
	manifests, err := servicecidr.Read()
	if err != nil {
		return err
	}
	manifests.Pool.Name = nameOfPool(manifests.Pool.Name, pools)
	manifests.Pool.Spec.CIDRs = pools
	cidrs, policies := client.NetworkingV1().ServiceCIDRs(), client.AdmissionregistrationV1()
	if err := applyManifest(ctx, cidrs, manifests.Pool); err != nil {
		return err
	}
	if err := applyManifest(ctx, policies.ValidatingAdmissionPolicies(), manifests.Policy); err != nil {
		return err
	}
	if err := applyManifest(ctx, policies.ValidatingAdmissionPolicyBindings(), manifests.Binding); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, establishedPoll, true, func(ctx context.Context) (bool, error) {
		current, err := cidrs.Get(ctx, manifests.Pool.Name, metav1.GetOptions{})
		return err == nil && isServed(current, manifests.Pool.Spec.CIDRs), err
	})
}

// nameOfPool returns the name of the ServiceCIDR with a pool. The ranges of a
// ServiceCIDR cannot be changed.
func nameOfPool(prefix string, pools []string) string {
	if slices.Equal(pools, []string{servicecidr.DefaultPool}) {
		return prefix
	}
	return prefix + "-" + strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(strings.Join(pools, "-"))
}

// patcher is a client of objects of one type.
type patcher[T any] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// applyManifest brings an object of the super cluster to what a manifest says.
func applyManifest[T metav1.Object](ctx context.Context, client patcher[T], manifest T) error {
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: name, Force: new(true)}
	if _, err := client.Patch(ctx, manifest.GetName(), types.ApplyPatchType, data, options); err != nil {
		return fmt.Errorf("apply %T %s: %w", manifest, manifest.GetName(), err)
	}
	return nil
}

// isServed reports whether the super cluster allocates addresses of these ranges.
func isServed(cidr *networkingv1.ServiceCIDR, ranges []string) bool {
	return slices.Equal(cidr.Spec.CIDRs, ranges) &&
		meta.IsStatusConditionTrue(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
}
