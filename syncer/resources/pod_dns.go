package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// Limits of an apiserver for a pod's DNS configuration (Pod validation).
const (
	maxNameservers = 3
	maxSearches    = 32
)

// translateDNS makes a pod with cluster DNS use that of the tenant, for names
// in the tenant's namespaces: a kubelet would configure the super cluster's. It
// replicates the kubelet, which only knows the namespace in the super cluster.
// Without Service addresses of its own, the tenant has no DNS for pods.
func translateDNS(v kinds.View, spec *corev1.PodSpec) {
	server := v.Tenant.ServiceAddress(addresses.DNS)
	if !server.IsValid() || !asksCluster(spec) {
		return
	}
	domain := v.Tenant.ClusterDomain
	config := &corev1.PodDNSConfig{
		Nameservers: []string{server.String()},
		Searches:    []string{v.Namespace + ".svc." + domain, "svc." + domain, domain},
		Options:     []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("5")}},
	}
	if own := spec.DNSConfig; own != nil {
		config.Nameservers = appendMissing(config.Nameservers, own.Nameservers)
		config.Searches = appendMissing(config.Searches, own.Searches)
		config.Options = mergeDNSOptions(config.Options, own.Options)
	}
	// A kubelet truncates the lists; an apiserver would reject a pod with
	// DNSNone that exceeds the limits.
	config.Nameservers = config.Nameservers[:min(len(config.Nameservers), maxNameservers)]
	config.Searches = config.Searches[:min(len(config.Searches), maxSearches)]
	spec.DNSPolicy, spec.DNSConfig = corev1.DNSNone, config
}

// asksCluster reports whether a kubelet would configure the cluster's DNS for a
// pod. A pod in the host network has to request it.
func asksCluster(spec *corev1.PodSpec) bool {
	switch spec.DNSPolicy {
	case corev1.DNSClusterFirstWithHostNet:
		return true
	case corev1.DNSClusterFirst, "":
		return !spec.HostNetwork
	case corev1.DNSDefault, corev1.DNSNone:
	}
	return false
}

// appendMissing appends the values that are not in the list yet.
func appendMissing(have, more []string) []string {
	for _, one := range more {
		if !slices.Contains(have, one) {
			have = append(have, one)
		}
	}
	return have
}

// mergeDNSOptions returns the options, overridden by those of the pod.
func mergeDNSOptions(options, own []corev1.PodDNSConfigOption) []corev1.PodDNSConfigOption {
	overridden := func(o corev1.PodDNSConfigOption) bool {
		return slices.ContainsFunc(own, func(p corev1.PodDNSConfigOption) bool { return p.Name == o.Name })
	}
	return append(slices.DeleteFunc(options, overridden), own...)
}
