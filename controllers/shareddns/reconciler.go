// Package shareddns directs the DNS address of each tenant to the DNS that
// tenants share: for the copy of the tenant's Service kube-dns, it ensures an
// EndpointSlice with the addresses of vc-dns and the tenant's port there. vc-dns
// reads the ports of tenants from the same EndpointSlices. The Services kube-dns
// of the tenant's networks lead to the same port.
package shareddns

import (
	"context"
	"errors"
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
	// timeout bounds a reconcile, which makes one request, and one for each network.
	timeout = time.Minute
)

// Reconciler ensures the EndpointSlices of tenants.
type Reconciler struct {
	// Client reads from the manager's cache, which has CachedObjects.
	Client client.Client
	// Service is the Service of vc-dns in the super cluster. Without one, the
	// EndpointSlices of all tenants are deleted.
	Service types.NamespacedName

	// networks reads the copies of the DNS Services of networks.
	networks client.Reader
	ports    ports
}

// Reconcile ensures, or deletes, the EndpointSlices of one tenant.
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
		if err := r.removeOthers(ctx, vc, nil); err != nil {
			return err
		}
		r.ports.release(tenant)
		return nil
	}
	port, err := r.ports.assign(tenant)
	if err != nil {
		return err
	}
	services, err := r.ofNetworks(ctx, vc)
	if err != nil {
		return err
	}
	services[names.DNSService] = address
	kept := map[string]bool{}
	var failed []error
	for service, address := range services {
		kind := addresses.SliceType(address)
		servers, err := r.servers(ctx, kind)
		if err != nil {
			return err
		}
		want := desiredSlice(vc, service, port, kind, servers)
		kept[want.Name] = true
		failed = append(failed, r.ensure(ctx, want))
	}
	return errors.Join(append(failed, r.removeOthers(ctx, vc, kept))...)
}

// ofNetworks returns the addresses of the DNS Services of a tenant's networks
// that the shared DNS serves.
func (r *Reconciler) ofNetworks(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (map[string]netip.Addr, error) {
	all := &corev1.ServiceList{}
	in := client.InNamespace(names.SuperNamespace(vc.Status.ClusterNamespace, metav1.NamespaceSystem))
	if err := r.networks.List(ctx, all, in); err != nil {
		return nil, fmt.Errorf("list the DNS Services of networks: %w", err)
	}
	found := map[string]netip.Addr{}
	for i := range all.Items {
		svc := &all.Items[i]
		if address, err := netip.ParseAddr(svc.Spec.ClusterIP); err == nil && asksShared(svc, vc.Status.ClusterNamespace) {
			found[svc.Name] = address
		}
	}
	return found, nil
}

// sharedAddress returns the address of the tenant's DNS Service if the shared
// DNS serves it. A Service of the tenant's own is served by the tenant's pods
// alone.
func (r *Reconciler) sharedAddress(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (netip.Addr, error) {
	if r.Service.Name == "" {
		return netip.Addr{}, nil // and the cache has no Services: see CachedObjects
	}
	own, err := netip.ParsePrefix(vc.Status.ServiceCIDR)
	if err != nil && vc.Spec.Provisioner != tenancyv1alpha1.ProvisionerConverted {
		return netip.Addr{}, nil // without Service addresses of its own, the tenant has no DNS
	}
	key := types.NamespacedName{Namespace: names.SuperNamespace(vc.Status.ClusterNamespace, metav1.NamespaceSystem), Name: names.DNSService}
	svc := &corev1.Service{}
	if err := r.Client.Get(ctx, key, svc); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return netip.Addr{}, fmt.Errorf("get Service %s: %w", key, err)
		}
		return netip.Addr{}, nil
	}
	if vc.Spec.Provisioner == tenancyv1alpha1.ProvisionerConverted {
		return convertedAddress(svc), nil
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

// removeOthers deletes the EndpointSlices of a tenant that are not kept.
func (r *Reconciler) removeOthers(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, kept map[string]bool) error {
	all := &discoveryv1.EndpointSliceList{}
	in := client.InNamespace(names.SuperNamespace(vc.Status.ClusterNamespace, metav1.NamespaceSystem))
	if err := r.Client.List(ctx, all, in, client.HasLabels{names.DNSPort}); err != nil {
		return fmt.Errorf("list the EndpointSlices of the tenant: %w", err)
	}
	for i := range all.Items {
		slice := &all.Items[i]
		if kept[slice.Name] {
			continue
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, slice)); err != nil {
			return fmt.Errorf("delete EndpointSlice %s: %w", client.ObjectKeyFromObject(slice), err)
		}
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
