package resources

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// maxHostname is the longest host name that a kubelet does not cut off.
const maxHostname = 63

// translateHostname has a pod that wants its full name as its host name get the one that the tenant's DNS knows. A kubelet would make it
// of the super cluster's namespace, and start nothing where that makes it too long. What is too long in the tenant, too, is left to the
// kubelet to complain of.
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
