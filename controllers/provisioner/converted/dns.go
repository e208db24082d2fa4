package converted

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const dnsPort int32 = 53

// dnsService is the Service at which the shared DNS answers a tenant.
func dnsService(vc *tenancyv1alpha1.VirtualCluster) types.NamespacedName {
	return types.NamespacedName{
		Namespace: names.SuperNamespace(vc.Status.ClusterNamespace, metav1.NamespaceSystem), Name: names.DNSService,
	}
}

// dnsAddress returns the address of that Service; empty if there is none.
func (p *Provisioner) dnsAddress(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (string, error) {
	if !p.sharesDNS {
		return "", nil
	}
	key, service := dnsService(vc), &corev1.Service{}
	if err := p.live.Get(ctx, key, service); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("get Service %s: %w", key, err)
		}
		return "", nil
	}
	if _, err := netip.ParseAddr(service.Spec.ClusterIP); err != nil || !has(service.Labels, names.OwnerLabels(vc)) {
		return "", nil //nolint:nilerr // without an address, the tenant's pods ask no DNS of the tenant
	}
	return service.Spec.ClusterIP, nil
}

// ensureDNS makes the Service, and returns its address. vc-manager directs it to the
// shared DNS, unless the tenant gives it a selector. The super cluster chooses the address.
func (p *Provisioner) ensureDNS(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (string, error) {
	if address, err := p.dnsAddress(ctx, vc); err != nil || address != "" || !p.sharesDNS {
		return address, err
	}
	key := dnsService(vc)
	port := func(name string, protocol corev1.Protocol) *corev1ac.ServicePortApplyConfiguration {
		return corev1ac.ServicePort().WithName(name).WithProtocol(protocol).WithPort(dnsPort)
	}
	want := corev1ac.Service(key.Name, key.Namespace).
		WithLabels(names.OwnerLabels(vc)).WithLabels(map[string]string{"k8s-app": names.DNSService}).
		WithSpec(corev1ac.ServiceSpec().WithPorts(port("dns", corev1.ProtocolUDP), port("dns-tcp", corev1.ProtocolTCP)))
	if err := p.applyService(ctx, want); err != nil {
		return "", err
	}
	return p.dnsAddress(ctx, vc)
}
