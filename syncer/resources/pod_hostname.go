package resources

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// maxHostname is the length above which a kubelet truncates a host name.
const maxHostname = 63

// translateHostname sets the host name of a pod with setHostnameAsFQDN to its
// name in the tenant's DNS. A kubelet would use the namespace in the super
// cluster, and would not start the pod if the name is too long. A name that is
// too long in the tenant as well is left to the kubelet, which reports it.
func translateHostname(v kinds.View, pod string, spec *corev1.PodSpec) {
	if !ptr.Deref(spec.SetHostnameAsFQDN, false) || spec.Subdomain == "" || spec.HostNetwork {
		return
	}
	full := cmp.Or(spec.Hostname, pod) + "." + spec.Subdomain + "." + v.Namespace + ".svc." + v.Tenant.ClusterDomain
	if len(full) > maxHostname {
		return
	}
	spec.HostnameOverride, spec.SetHostnameAsFQDN = &full, nil
}
