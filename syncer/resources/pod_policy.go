package resources

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// specPath is the parent of the fields of a pod that may be rejected.
var specPath = field.NewPath("spec")

// admitPod returns why the super cluster does not run a pod: it requests access
// to its node that the tenant's policy does not allow, or a feature that does
// not exist in the super cluster. Violations of the Pod Security level are
// rejected by the super cluster itself.
func admitPod(v kinds.View, tenant *corev1.Pod) error {
	policy, spec := v.Tenant.Policy, &tenant.Spec
	for _, why := range []error{
		admitNodeName(policy, spec),
		admitHostNamespaces(policy, spec),
		admitScheduler(policy, spec),
		admitVolumes(v, spec),
		admitProbes(policy, spec),
		admitProfiles(policy, tenant),
		admitHostPorts(policy, spec),
		admitRuntimeClass(v, spec),
		admitDeviceResources(v, spec),
		admitSources(spec),
		admitSchedulingGroup(spec),
		admitFields(v, tenant),
	} {
		if why != nil {
			return why
		}
	}
	return nil
}

func admitNodeName(policy tenancyv1alpha1.TenantPolicy, spec *corev1.PodSpec) error {
	if spec.NodeName == "" || policy.AllowNodeName {
		return nil
	}
	return field.Forbidden(specPath.Child("nodeName"),
		"the scheduler chooses the node; say which ones will do with spec.nodeSelector or spec.affinity")
}

func admitHostNamespaces(policy tenancyv1alpha1.TenantPolicy, spec *corev1.PodSpec) error {
	if policy.AllowHostNamespaces {
		return nil
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"hostNetwork", spec.HostNetwork}, {"hostPID", spec.HostPID}, {"hostIPC", spec.HostIPC}} {
		if f.set {
			return field.Forbidden(specPath.Child(f.name), "pods may not share the namespaces of their node")
		}
	}
	return nil
}

// admitHostPorts does not check pods in the host network: they can use any port
// without declaring it. Ephemeral containers have no ports.
func admitHostPorts(policy tenancyv1alpha1.TenantPolicy, spec *corev1.PodSpec) error {
	if spec.HostNetwork {
		return nil
	}
	if why := admitPorts(policy.HostPorts, specPath.Child("initContainers"), spec.InitContainers); why != nil {
		return why
	}
	return admitPorts(policy.HostPorts, specPath.Child("containers"), spec.Containers)
}

func admitPorts(may []tenancyv1alpha1.PortRange, path *field.Path, containers []corev1.Container) error {
	for i := range containers {
		for j, p := range containers[i].Ports {
			if p.HostPort != 0 && !inRanges(may, p.HostPort) {
				return field.Invalid(path.Index(i).Child("ports").Index(j).Child("hostPort"), p.HostPort,
					"containers may take "+hostPorts(may))
			}
		}
	}
	return nil
}

// inRanges reports whether a port is in one of the ranges.
func inRanges(ranges []tenancyv1alpha1.PortRange, port int32) bool {
	return slices.ContainsFunc(ranges, func(r tenancyv1alpha1.PortRange) bool { return r.Min <= port && port <= r.Max })
}

// hostPorts describes the allowed host ports.
func hostPorts(ranges []tenancyv1alpha1.PortRange) string {
	if len(ranges) == 0 {
		return "no port of their node"
	}
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = fmt.Sprintf("%d-%d", r.Min, r.Max)
	}
	return "these ports of their node: " + strings.Join(texts, ", ")
}

// admitSources rejects sources that a kubelet requests from its own apiserver,
// which does not know the tenant's signers and bundles.
func admitSources(spec *corev1.PodSpec) error {
	for i, v := range spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for j, s := range v.Projected.Sources {
			path := specPath.Child("volumes").Index(i).Child("projected", "sources").Index(j)
			switch bundle := s.ClusterTrustBundle; {
			case s.PodCertificate != nil:
				return field.Forbidden(path.Child("podCertificate"), "certificates for pods are not supported; use a Secret")
			case bundle != nil && !ptr.Deref(bundle.Optional, false):
				return field.Forbidden(path.Child("clusterTrustBundle"), "trust bundles are not supported; use a ConfigMap, or make it optional")
			}
		}
	}
	return nil
}

// admitSchedulingGroup rejects pods that have to be scheduled all or none:
// groups are not synced, and scheduling the pods separately would violate the
// request.
func admitSchedulingGroup(spec *corev1.PodSpec) error {
	if spec.SchedulingGroup == nil {
		return nil
	}
	return field.Forbidden(specPath.Child("schedulingGroup"), "scheduling groups are not supported")
}
