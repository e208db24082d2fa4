package converted

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/converted"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
)

const (
	httpsName       = "https"
	httpsPort int32 = 443
)

// addressAttempts is how often a Service is created if the super cluster chooses an
// address of the pool for it: about every second choice is one.
const addressAttempts = 20

// ensureAPIService makes the Service that leads to the gateway, where a cluster has
// that of its apiserver. It has endpoints if the URL of the gateway has an address.
func (p *Provisioner) ensureAPIService(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, gateway converted.Gateway) error {
	key := types.NamespacedName{Namespace: names.SuperNamespace(vc.Status.ClusterNamespace, metav1.NamespaceDefault), Name: names.APIService}
	address, port, err := addressOf(gateway.URL)
	if err != nil {
		return err
	}
	if err := p.ensureService(ctx, key, port); err != nil || !address.IsValid() {
		return err
	}
	return p.ensureEndpoints(ctx, key, address, port)
}

// addressOf returns the address in a URL that Endpoints can have, invalid if there is
// none, and the port.
func addressOf(gateway string) (netip.Addr, int32, error) {
	at, err := url.Parse(gateway)
	if err != nil {
		return netip.Addr{}, 0, fmt.Errorf("read the URL of the gateway: %w", err)
	}
	port := httpsPort
	if at.Port() != "" {
		parsed, err := strconv.ParseUint(at.Port(), 10, 16)
		if err != nil {
			return netip.Addr{}, 0, fmt.Errorf("read the port of the gateway: %w", err)
		}
		port = int32(parsed)
	}
	address, _ := netip.ParseAddr(at.Hostname()) // invalid for a name
	if !address.IsGlobalUnicast() {
		address = netip.Addr{}
	}
	return address, port, nil
}

func (p *Provisioner) ensureService(ctx context.Context, key types.NamespacedName, port int32) error {
	service := &corev1.Service{}
	err := p.live.Get(ctx, key, service)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Service %s: %w", key, err)
	}
	ports := service.Spec.Ports
	if err == nil && len(ports) == 1 && ports[0].TargetPort == intstr.FromInt32(port) && service.Spec.Selector == nil {
		return nil
	}
	want := corev1ac.Service(key.Name, key.Namespace).
		WithLabels(map[string]string{"component": "apiserver", "provider": names.APIService}).
		WithSpec(corev1ac.ServiceSpec().WithPorts(corev1ac.ServicePort().
			WithName(httpsName).WithProtocol(corev1.ProtocolTCP).WithPort(httpsPort).WithTargetPort(intstr.FromInt32(port))))
	return p.applyService(ctx, want)
}

// applyService applies a Service of the tenant for which the super cluster chooses an
// address.
func (p *Provisioner) applyService(ctx context.Context, want *corev1ac.ServiceApplyConfiguration) error {
	err := p.client.Apply(ctx, want, fieldOwner, client.ForceOwnership)
	for attempt := 1; servicecidr.IsRejection(err) && attempt < addressAttempts; attempt++ {
		err = p.client.Apply(ctx, want, fieldOwner, client.ForceOwnership)
	}
	if err != nil {
		return fmt.Errorf("apply Service %s/%s: %w", *want.Namespace, *want.Name, err)
	}
	return nil
}

// ensureEndpoints applies Endpoints, of which the super cluster makes EndpointSlices.
func (p *Provisioner) ensureEndpoints(ctx context.Context, key types.NamespacedName, address netip.Addr, port int32) error {
	want := corev1ac.Endpoints(key.Name, key.Namespace).WithSubsets(corev1ac.EndpointSubset().
		WithAddresses(corev1ac.EndpointAddress().WithIP(address.String())).
		WithPorts(corev1ac.EndpointPort().WithName(httpsName).WithProtocol(corev1.ProtocolTCP).WithPort(port)))
	if err := p.client.Apply(ctx, want, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply Endpoints %s: %w", key, err)
	}
	return nil
}
