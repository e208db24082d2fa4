package chain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	netutils "k8s.io/utils/net"
)

// createOwnService creates a Service of the control plane itself, which has a
// ClusterIP and no node port. It needs no allocators, so that a new tenant does
// not have them. As by an allocator, the address is taken first.
func (c *Chain) createOwnService(ctx context.Context, t *Tenant, service *corev1.Service) error {
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	if netutils.IsIPv6CIDR(&t.spec.ServiceCIDRs[0]) {
		service.Spec.IPFamilies[0] = corev1.IPv6Protocol
	}
	service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	_, err := t.client.NetworkingV1().IPAddresses().Create(ctx, addressOf(service), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) { // allocators repair the address of another Service
		return fmt.Errorf("create IPAddress %s: %w", service.Spec.ClusterIP, err)
	}
	legacyscheme.Scheme.Default(service)
	internal := &api.Service{}
	if err := legacyscheme.Scheme.Convert(service, internal, nil); err != nil {
		return err
	}
	withoutAllocators := *c.core.services.Store
	withoutAllocators.BeginCreate = nil
	ctx = request.WithNamespace(ctx, service.Namespace)
	_, err = withoutAllocators.Create(ctx, internal, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return err
}

// addressOf returns the record that a Service has its ClusterIP.
func addressOf(service *corev1.Service) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{
			Name: service.Spec.ClusterIP,
			Labels: map[string]string{
				networkingv1.LabelIPAddressFamily: string(service.Spec.IPFamilies[0]),
				networkingv1.LabelManagedBy:       ipallocator.ControllerName,
			},
		},
		Spec: networkingv1.IPAddressSpec{
			ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: service.Namespace, Name: service.Name},
		},
	}
}
