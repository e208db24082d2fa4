package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// serviceKind is the kind of Services, for references of other kinds.
const serviceKind = "Service"

// Service is synced down, and its load balancer's addresses and conditions are
// synced up. The copy has the cluster IP of the tenant's Service, if the tenant
// has a range of the super cluster's addresses, and one that the super cluster
// chooses otherwise. The super cluster also chooses the node ports of a load
// balancer. A Service of type NodePort gets exactly the tenant's ports, or is
// rejected. The Service of the tenant's own apiserver is synced down like any
// other, since pods use it. A Service of type ExternalName stays in the tenant,
// whose DNS serves it, unless the policy allows it: components of the super
// cluster that resolve it could be directed into the super cluster's network.
func Service() kinds.Flow {
	return kinds.Down[*corev1.Service]{
		Name:    serviceKind,
		Object:  &corev1.Service{},
		List:    &corev1.ServiceList{},
		Summary: "down, with the node ports that the tenant sees; load balancer addresses up",
		Skip: func(v kinds.View, tenant *corev1.Service) bool {
			return tenant.Spec.Type == corev1.ServiceTypeExternalName && !v.Tenant.Policy.AllowExternalNames
		},
		Desired: desiredService,
		Merge:   mergeService,
		Status:  serviceStatus,
		Parts: []kinds.Part[*corev1.Service]{
			{Resource: "services.nodeports", Amount: nodePortsOf},
			{Resource: "services.loadbalancers", Amount: loadBalancersOf},
		},
		Same: func(a, b *corev1.Service) bool { return semanticEqual(a.Status, b.Status) },
		Replace: func(super, desired *corev1.Service) bool {
			return headless(super) != headless(desired) || movedAway(super, desired)
		},
		ByChance: servicecidr.IsRejection,
	}
}

func desiredService(v kinds.View, tenant *corev1.Service) (*corev1.Service, error) {
	if err := checkService(v.Tenant.Policy, &tenant.Spec); err != nil {
		return nil, err
	}
	super := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Labels: networkLabels()},
		Spec:       *tenant.Spec.DeepCopy(),
	}
	spec := &super.Spec
	spec.Selector = v.Tenant.PodLabels(spec.Selector)
	if err := setAddresses(v.Tenant, spec); err != nil {
		return nil, err
	}
	if ptr.Deref(spec.IPFamilyPolicy, "") != corev1.IPFamilyPolicyRequireDualStack {
		// The tenant's apiserver set the families of its own addresses; the
		// super cluster's may differ. An address determines its own.
		spec.IPFamilies = nil
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		spec.ExternalName = "" // an apiserver stores it, and ignores it
	}
	spec.HealthCheckNodePort = 0
	if spec.Type != corev1.ServiceTypeNodePort {
		for i := range spec.Ports {
			spec.Ports[i].NodePort = 0
		}
	}
	return super, nil
}

// nodePortsOf returns the number of node ports of a service.
func nodePortsOf(s *corev1.Service) int {
	switch {
	case s.Spec.Type == corev1.ServiceTypeNodePort,
		s.Spec.Type == corev1.ServiceTypeLoadBalancer && ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true):
		return len(s.Spec.Ports)
	}
	return 0
}

func loadBalancersOf(s *corev1.Service) int {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return 1
	}
	return 0
}

// movedAway reports whether the copy has another cluster IP than it should,
// which is immutable.
func movedAway(super, desired *corev1.Service) bool {
	was, now := super.Spec.ClusterIP, desired.Spec.ClusterIP
	return was != "" && now != "" && was != now
}

// headless reports whether a service has no cluster IP because the tenant wants
// none, which is immutable.
func headless(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP == corev1.ClusterIPNone
}

// mergeService merges everything except the fields that the super cluster
// allocated or chose. The apiserver clears unchanged fields that do not apply
// to a new type.
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
	if was.ClusterIP != "" {
		spec.ClusterIP, spec.ClusterIPs = was.ClusterIP, was.ClusterIPs
	}
	if changesFamilies(&was, &desired.Spec) {
		mergeFamilies(spec, &desired.Spec)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		mergeLoadBalancer(spec, &was)
	}
}

// changesFamilies reports whether the tenant's Service has got a second address,
// or has one no more. A policy that prefers both has the super cluster choose.
func changesFamilies(was, desired *corev1.ServiceSpec) bool {
	named := desired.ClusterIPs
	return len(named) > 0 && named[0] == was.ClusterIP && len(named) != len(was.ClusterIPs) &&
		ptr.Deref(desired.IPFamilyPolicy, "") != corev1.IPFamilyPolicyPreferDualStack
}

// mergeFamilies adds the second address that the tenant's Service has, or removes
// it. The first one is immutable.
func mergeFamilies(spec, desired *corev1.ServiceSpec) {
	spec.ClusterIPs = slices.Clone(desired.ClusterIPs)
	if len(desired.IPFamilies) == len(desired.ClusterIPs) {
		spec.IPFamilies = slices.Clone(desired.IPFamilies)
	} else {
		spec.IPFamilies = spec.IPFamilies[:min(len(spec.IPFamilies), len(spec.ClusterIPs))]
	}
}

// mergeLoadBalancer keeps the node ports that the super cluster allocated, and
// the class that it chose for a load balancer without one.
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

// nodePort returns the node port that the super cluster allocated for a port; 0
// if the port is new.
func nodePort(ports []corev1.ServicePort, of corev1.ServicePort) int32 {
	for _, p := range ports {
		if p.Port == of.Port && p.Protocol == of.Protocol {
			return p.NodePort
		}
	}
	return 0
}

// serviceStatus copies the status of the copy. Only a load balancer may have
// addresses.
func serviceStatus(v kinds.View, tenant, super *corev1.Service) {
	tenant.Status = corev1.ServiceStatus{Conditions: toldConditions(v, tenant, super, super.Status.Conditions)}
	if tenant.Spec.Type == corev1.ServiceTypeLoadBalancer {
		tenant.Status.LoadBalancer = *super.Status.LoadBalancer.DeepCopy()
	}
}
