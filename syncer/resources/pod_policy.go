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

// specPath is where the fields of a pod are that it may be refused for.
var specPath = field.NewPath("spec")

// admitPod says why the super cluster does not run a pod: it asks for something of its node that the policy of the tenant does
// not allow, or for something that the super cluster does not have for it. What the Pod Security level refuses beside that, the
// super cluster says.
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

// admitHostPorts leaves pods alone that are in the network of their node: they can take any port without saying so. Containers
// that are added later have no ports.
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

// inRanges says whether one of the ranges has a port.
func inRanges(ranges []tenancyv1alpha1.PortRange, port int32) bool {
	return slices.ContainsFunc(ranges, func(r tenancyv1alpha1.PortRange) bool { return r.Min <= port && port <= r.Max })
}

// hostPorts says which ports of a node may be taken.
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

// admitSources refuses what a kubelet asks its own apiserver for, where the tenant's signers and bundles are not known.
func admitSources(spec *corev1.PodSpec) error {
	for i, v := range spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for j, s := range v.Projected.Sources {
			path := specPath.Child("volumes").Index(i).Child("projected", "sources").Index(j)
			switch bundle := s.ClusterTrustBundle; {
			case s.PodCertificate != nil:
				return field.Forbidden(path.Child("podCertificate"), "pods are not given certificates here; use a Secret")
			case bundle != nil && !ptr.Deref(bundle.Optional, false):
				return field.Forbidden(path.Child("clusterTrustBundle"), "pods do not find bundles here; use a ConfigMap, or make it optional")
			}
		}
	}
	return nil
}

// admitSchedulingGroup refuses pods that are to be scheduled all or none: groups are not carried, and one by one is not what
// was asked for.
func admitSchedulingGroup(spec *corev1.PodSpec) error {
	if spec.SchedulingGroup == nil {
		return nil
	}
	return field.Forbidden(specPath.Child("schedulingGroup"), "pods are scheduled one by one here")
}
