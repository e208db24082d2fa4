// Package shareddns directs the DNS address of each tenant to the DNS that
// tenants share: for the copy of the tenant's Service kube-dns, it ensures an
// EndpointSlice with the addresses of vc-dns and the tenant's port there. vc-dns
// reads the ports of tenants from the same EndpointSlices.
package shareddns

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const (
	// fieldOwner owns what is applied.
	fieldOwner = client.FieldOwner("vc-manager")
	// workers is how many tenants are reconciled at a time. When vc-dns gets new
	// addresses, all are.
	workers = 16
	// timeout bounds a reconcile, which makes one request.
	timeout = 10 * time.Second
)

// Reconciler ensures the EndpointSlices of tenants.
type Reconciler struct {
	// Client reads from the manager's cache, which has CachedObjects.
	Client client.Client
	// Service is the Service of vc-dns in the super cluster. Without one, the
	// EndpointSlices of all tenants are deleted.
	Service types.NamespacedName

	ports ports
}

// Reconcile ensures, or deletes, the EndpointSlice of one tenant.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if err := r.reconcile(ctx, req.NamespacedName); err != nil {
		return reconcile.Result{}, fmt.Errorf("shared DNS of VirtualCluster %s: %w", req, err)
	}
	return reconcile.Result{}, nil
}

func (r *Reconciler) reconcile(ctx context.Context, tenant types.NamespacedName) error {
	if err := r.ports.load(func() ([]discoveryv1.EndpointSlice, error) { return r.stored(ctx) }); err != nil {
		return err
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := r.Client.Get(ctx, tenant, vc); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.ports.release(tenant)
		}
		return client.IgnoreNotFound(err)
	}
	if !vc.DeletionTimestamp.IsZero() || vc.Status.ClusterNamespace == "" {
		return nil // the EndpointSlice is deleted with its namespace
	}
	address, err := r.sharedAddress(ctx, vc)
	if err != nil {
		return err
	}
	if !address.IsValid() {
		if err := r.remove(ctx, vc); err != nil {
			return err
		}
		r.ports.release(tenant)
		return nil
	}
	port, err := r.ports.assign(tenant)
	if err != nil {
		return err
	}
	servers, err := r.servers(ctx, addressType(address))
	if err != nil {
		return err
	}
	return r.ensure(ctx, desiredSlice(vc, port, addressType(address), servers))
}

// sharedAddress returns the address of the tenant's DNS Service if the shared
// DNS serves it. A Service of the tenant's own is served by the tenant's pods
// alone.
func (r *Reconciler) sharedAddress(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (netip.Addr, error) {
	if r.Service.Name == "" {
		return netip.Addr{}, nil // and the cache has no Services: see CachedObjects
	}
	own, err := netip.ParsePrefix(vc.Status.ServiceCIDR)
	if err != nil {
		return netip.Addr{}, nil //nolint:nilerr // without Service addresses of its own, the tenant has no DNS
	}
	key := types.NamespacedName{Namespace: names.SuperNamespace(vc.Status.ClusterNamespace, metav1.NamespaceSystem), Name: names.DNSService}
	svc := &corev1.Service{}
	if err := r.Client.Get(ctx, key, svc); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return netip.Addr{}, fmt.Errorf("get Service %s: %w", key, err)
		}
		return netip.Addr{}, nil
	}
	address := addresses.In(own, addresses.DNS)
	if !isShared(svc, vc.Status.ClusterNamespace, address) {
		return netip.Addr{}, nil
	}
	return address, nil
}

// ensure applies an EndpointSlice if it is not up to date.
func (r *Reconciler) ensure(ctx context.Context, want *discoveryv1.EndpointSlice) error {
	key, have := client.ObjectKeyFromObject(want), &discoveryv1.EndpointSlice{}
	switch err := r.Client.Get(ctx, key, have); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("get EndpointSlice %s: %w", key, err)
	case err == nil && upToDate(have, want):
		return nil
	}
	if err := r.Client.Apply(ctx, applyOf(want), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply EndpointSlice %s: %w", key, err)
	}
	return nil
}

// remove deletes the EndpointSlice of a tenant, if it has one.
func (r *Reconciler) remove(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	key := client.ObjectKeyFromObject(desiredSlice(vc, 0, "", nil))
	have := &discoveryv1.EndpointSlice{}
	if err := r.Client.Get(ctx, key, have); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get EndpointSlice %s: %w", key, err)
		}
		return nil
	}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, have)); err != nil {
		return fmt.Errorf("delete EndpointSlice %s: %w", key, err)
	}
	return nil
}

// stored returns the EndpointSlices of all tenants.
func (r *Reconciler) stored(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
	all := &discoveryv1.EndpointSliceList{}
	if err := r.Client.List(ctx, all, client.HasLabels{names.DNSPort}); err != nil {
		return nil, fmt.Errorf("list the ports of all tenants: %w", err)
	}
	return all.Items, nil
}

// servers returns the addresses of vc-dns that are ready.
func (r *Reconciler) servers(ctx context.Context, kind discoveryv1.AddressType) ([]string, error) {
	all := &discoveryv1.EndpointSliceList{}
	of := client.MatchingLabels{discoveryv1.LabelServiceName: r.Service.Name}
	err := r.Client.List(ctx, all, client.InNamespace(r.Service.Namespace), of)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of Service %s: %w", r.Service, err)
	}
	return readyAddresses(all.Items, kind), nil
}
