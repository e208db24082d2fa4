package converted

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// PolicyText returns a policy as the admission policies of the super cluster read
// it: a line with a field and one of its values, for each value that is not the
// default. A line that is missing permits nothing.
func PolicyText(policy tenancyv1alpha1.TenantPolicy) string {
	var lines []string
	add := func(field string, values ...string) {
		for _, value := range values {
			if !strings.ContainsAny(value, "\r\n") {
				lines = append(lines, field+" "+value)
			}
		}
	}
	for field, set := range map[string]bool{
		"allowExternalNames":     policy.AllowExternalNames,
		"allowHostNamespaces":    policy.AllowHostNamespaces,
		"allowHostPath":          policy.AllowHostPath,
		"allowNodeName":          policy.AllowNodeName,
		"allowNodeProfiles":      policy.AllowNodeProfiles || policy.PodSecurity == tenancyv1alpha1.PodSecurityPrivileged,
		"allowProbeHosts":        policy.AllowProbeHosts,
		"allowSystemPriority":    policy.AllowSystemPriority,
		"allowSystemTolerations": policy.AllowSystemTolerations,
	} {
		if set {
			add(field, "true")
		}
	}
	add("allowSchedulers", policy.AllowSchedulers...)
	add("allowTolerations", policy.AllowTolerations...)
	add("allowVolumeTypes", texts(policy.AllowVolumeTypes)...)
	add("endpointCIDRs", texts(policy.EndpointCIDRs)...)
	add("ingressHosts", policy.IngressHosts...)
	add("loadBalancerCIDRs", texts(policy.LoadBalancerCIDRs)...)
	add("loadBalancerClasses", policy.LoadBalancerClasses...)
	if policy.DaemonSets == tenancyv1alpha1.DaemonSetsRun {
		add("daemonSets", string(policy.DaemonSets))
	}
	for _, ports := range policy.HostPorts {
		add("hostPorts", fmt.Sprintf("%d-%d", ports.Min, ports.Max))
	}
	if policy.MaxGracePeriodSeconds != nil {
		add("maxGracePeriodSeconds", strconv.FormatInt(*policy.MaxGracePeriodSeconds, 10))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = string(value)
	}
	return all
}
