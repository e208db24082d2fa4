package resources

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

var errExternalIPs = errors.New("spec.externalIPs is not allowed, since it could draw the traffic of others; " +
	"use a Service of type LoadBalancer")

// checkService rejects a service with fields that its tenant's policy does not
// allow.
func checkService(policy tenancyv1alpha1.TenantPolicy, spec *corev1.ServiceSpec) error {
	class := ptr.Deref(spec.LoadBalancerClass, "")
	switch {
	case len(spec.ExternalIPs) > 0:
		return errExternalIPs
	case spec.LoadBalancerIP != "" && !inCIDRs(policy.LoadBalancerCIDRs, spec.LoadBalancerIP):
		return fmt.Errorf("spec.loadBalancerIP %q is not allowed; the load balancer chooses its address", spec.LoadBalancerIP)
	case class != "" && !slices.Contains(policy.LoadBalancerClasses, class):
		return fmt.Errorf("spec.loadBalancerClass %q is not offered; omit it for the default load balancer", class)
	}
	return nil
}
