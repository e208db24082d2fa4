package resources

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

// Service flows down, its load balancer's addresses up. The super cluster gives the copy cluster IPs and node ports of its
// own. The service of the tenant's own apiserver stays: no pods of the tenant stand behind it.
func Service() engine.Kind {
	return engine.Down[*corev1.Service]{
		Name:    "Service",
		Object:  &corev1.Service{},
		List:    &corev1.ServiceList{},
		Desired: desiredService,
		Merge:   mergeService,
		Skip: func(tenant *corev1.Service) bool {
			return tenant.Namespace == metav1.NamespaceDefault && tenant.Name == "kubernetes"
		},
		Status: func(_ engine.View, tenant, super *corev1.Service) {
			tenant.Status.LoadBalancer = *super.Status.LoadBalancer.DeepCopy()
		},
		Same: func(a, b *corev1.Service) bool { return semanticEqual(a.Status.LoadBalancer, b.Status.LoadBalancer) },
		Replace: func(super, desired *corev1.Service) bool {
			return headless(super) != headless(desired)
		},
	}
}

var errExternalIPs = errors.New("spec.externalIPs is not allowed, since it could draw the traffic of others; " +
	"use a Service of type LoadBalancer")

func desiredService(_ engine.View, tenant *corev1.Service) (*corev1.Service, error) {
	if len(tenant.Spec.ExternalIPs) > 0 {
		return nil, errExternalIPs
	}
	super := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Labels: networkLabels()},
		Spec:       *tenant.Spec.DeepCopy(),
	}
	if !headless(tenant) {
		super.Spec.ClusterIP, super.Spec.ClusterIPs = "", nil
	}
	super.Spec.HealthCheckNodePort = 0
	for i := range super.Spec.Ports {
		super.Spec.Ports[i].NodePort = 0
	}
	return super, nil
}

// headless says whether a service has no cluster IP because the tenant wants none. It cannot be changed in place.
func headless(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP == corev1.ClusterIPNone
}

// mergeService takes everything but what the super cluster allocated.
func mergeService(super, desired *corev1.Service) {
	was := super.Spec
	super.Spec = *desired.Spec.DeepCopy()
	super.Spec.IPFamilies, super.Spec.IPFamilyPolicy = was.IPFamilies, was.IPFamilyPolicy
	if super.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	super.Spec.ClusterIP, super.Spec.ClusterIPs = was.ClusterIP, was.ClusterIPs
	if super.Spec.Type == corev1.ServiceTypeClusterIP {
		return
	}
	super.Spec.HealthCheckNodePort = was.HealthCheckNodePort
	for i := range super.Spec.Ports {
		super.Spec.Ports[i].NodePort = nodePort(was.Ports, super.Spec.Ports[i])
	}
}

// nodePort is the node port that the super cluster gave to a port; 0 if it is new.
func nodePort(ports []corev1.ServicePort, of corev1.ServicePort) int32 {
	for _, p := range ports {
		if p.Port == of.Port && p.Protocol == of.Protocol {
			return p.NodePort
		}
	}
	return 0
}
