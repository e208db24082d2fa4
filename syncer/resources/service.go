package resources

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

// Service flows down, its load balancer's addresses and its conditions up. The super cluster gives the copy cluster IPs of its
// own, and node ports to what is behind a load balancer; a service of type NodePort gets the very ports that the tenant sees, or is
// refused. The service of the tenant's own apiserver stays: no pods of the tenant stand behind it.
func Service() engine.Kind {
	return engine.Down[*corev1.Service]{
		Name:    "Service",
		Object:  &corev1.Service{},
		List:    &corev1.ServiceList{},
		Desired: desiredService,
		Merge:   mergeService,
		Skip: func(tenant *corev1.Service) bool {
			return tenant.Namespace == metav1.NamespaceDefault && tenant.Name == apiserverService
		},
		Status: serviceStatus,
		Same:   func(a, b *corev1.Service) bool { return semanticEqual(a.Status, b.Status) },
		Replace: func(super, desired *corev1.Service) bool {
			return headless(super) != headless(desired)
		},
	}
}

// apiserverService is the service in the namespace default by which pods reach the apiserver. Each apiserver makes its own.
const apiserverService = "kubernetes"

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
	spec := &super.Spec
	if !headless(tenant) {
		spec.ClusterIP, spec.ClusterIPs = "", nil
	}
	if ptr.Deref(spec.IPFamilyPolicy, "") != corev1.IPFamilyPolicyRequireDualStack {
		// The tenant's apiserver filled in what families its own addresses have; the super cluster's may have others.
		spec.IPFamilies = nil
	}
	spec.HealthCheckNodePort = 0
	if spec.Type != corev1.ServiceTypeNodePort {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	return super, nil
}

// headless says whether a service has no cluster IP because the tenant wants none. It cannot be changed in place.
func headless(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP == corev1.ClusterIPNone
}

// mergeService takes everything but what the super cluster allocated or chose. What does not fit a new type is cleared with it
// by the apiserver, if it is left as it was.
func mergeService(super, desired *corev1.Service) {
	was := super.Spec
	super.Spec = *desired.Spec.DeepCopy()
	spec := &super.Spec
	if len(was.IPFamilies) > 0 {
		spec.IPFamilies = was.IPFamilies
	}
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = was.IPFamilyPolicy
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	spec.ClusterIP, spec.ClusterIPs = was.ClusterIP, was.ClusterIPs
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		mergeLoadBalancer(spec, &was)
	}
}

// mergeLoadBalancer keeps the node ports that the super cluster gave, and the class that it chose for a load balancer without one.
func mergeLoadBalancer(spec, was *corev1.ServiceSpec) {
	spec.HealthCheckNodePort = was.HealthCheckNodePort
	if spec.LoadBalancerClass == nil {
		spec.LoadBalancerClass = was.LoadBalancerClass
	}
	if !ptr.Deref(spec.AllocateLoadBalancerNodePorts, true) {
		return
	}
	for i := range spec.Ports {
		spec.Ports[i].NodePort = nodePort(was.Ports, spec.Ports[i])
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

// serviceStatus shows the tenant the status of the copy. Only a load balancer may have addresses.
func serviceStatus(v engine.View, tenant, super *corev1.Service) {
	tenant.Status = corev1.ServiceStatus{Conditions: toldConditions(v, tenant, super, super.Status.Conditions)}
	if tenant.Spec.Type == corev1.ServiceTypeLoadBalancer {
		tenant.Status.LoadBalancer = *super.Status.LoadBalancer.DeepCopy()
	}
}
