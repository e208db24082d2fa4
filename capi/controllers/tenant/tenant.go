// Package tenant relates the objects of Cluster API to the VirtualCluster of a
// Cluster. It is free of I/O.
package tenant

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	controlplanev1 "github.com/virtualcluster/virtualcluster/capi/apis/controlplane/v1alpha1"
	infrav1 "github.com/virtualcluster/virtualcluster/capi/apis/infrastructure/v1alpha1"
)

// ControlPlaneAnnotation is an annotation of a VirtualCluster with the name of
// the NestedControlPlane that makes it.
const ControlPlaneAnnotation = "controlplane.cluster.x-k8s.io/nested-control-plane"

// httpsPort is the port of a URL without one.
const httpsPort = 443

// Key returns the name of the VirtualCluster of a Cluster: that of the Cluster.
func Key(cluster *clusterv1.Cluster) client.ObjectKey { return client.ObjectKeyFromObject(cluster) }

// Belongs reports whether a VirtualCluster is that of the Cluster of the same
// name. Everyone else's lacks the label, and is never changed. An admin adds the
// label to hand a VirtualCluster over to Cluster API.
func Belongs(vc *tenancyv1alpha1.VirtualCluster) bool {
	return vc.Name != "" && vc.Labels[clusterv1.ClusterNameLabel] == vc.Name
}

// IsMadeBy reports whether a NestedControlPlane makes the VirtualCluster, so
// that it is deleted with it.
func IsMadeBy(vc *tenancyv1alpha1.VirtualCluster, controlPlane *controlplanev1.NestedControlPlane) bool {
	uid := controlPlane.Annotations[controlplanev1.VirtualClusterUIDAnnotation]
	return Belongs(vc) && vc.Annotations[ControlPlaneAnnotation] == controlPlane.Name && (uid == "" || uid == string(vc.UID))
}

// Specify writes into a VirtualCluster all that the objects of Cluster API
// determine. Other fields are left to the platform admin.
func Specify(
	vc *tenancyv1alpha1.VirtualCluster, cluster *clusterv1.Cluster,
	controlPlane *controlplanev1.NestedControlPlane, infrastructure *infrav1.NestedCluster,
) error {
	first, second, err := serviceCIDRs(cluster)
	if err != nil {
		return err
	}
	set(&vc.Labels, clusterv1.ClusterNameLabel, cluster.Name)
	set(&vc.Annotations, ControlPlaneAnnotation, controlPlane.Name)

	spec, wanted := &vc.Spec, controlPlane.Spec.DeepCopy()
	spec.ServiceCIDR, spec.SecondaryServiceCIDR = first, second
	spec.ClusterDomain = cluster.Spec.ClusterNetwork.ServiceDomain
	spec.KubernetesVersion = Version(wanted.Version)
	spec.Provisioner = wanted.Provisioner
	spec.PKIExpireDays = wanted.PKIExpireDays
	spec.ControlPlane = wanted.ControlPlane

	share := infrastructure.Spec.DeepCopy()
	spec.Weight = share.Weight
	spec.TransparentMetaPrefixes = share.TransparentMetaPrefixes
	spec.OpaqueMetaPrefixes = share.OpaqueMetaPrefixes
	spec.Sync = share.Sync
	spec.Policy = share.Policy
	spec.Quota = share.Quota
	return nil
}

// Version returns a version with the prefix v.
func Version(version string) string { return "v" + strings.TrimPrefix(version, "v") }

// serviceCIDRs returns the ranges of Service addresses of a Cluster; empty if the
// platform chooses.
func serviceCIDRs(cluster *clusterv1.Cluster) (first, second string, err error) {
	switch blocks := cluster.Spec.ClusterNetwork.Services.CIDRBlocks; len(blocks) {
	case 0:
		return "", "", nil
	case 1:
		return blocks[0], "", nil
	case 2: //nolint:mnd // one of each IP family
		return blocks[0], blocks[1], nil
	default:
		return "", "", fmt.Errorf("spec.clusterNetwork.services.cidrBlocks of the Cluster has %d ranges: a tenant has one of each IP family",
			len(blocks))
	}
}

// Endpoint returns the address in the URL of an apiserver.
func Endpoint(address string) (controlplanev1.APIEndpoint, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" {
		return controlplanev1.APIEndpoint{}, errors.New("the endpoint of the VirtualCluster is no URL")
	}
	port := parsed.Port()
	if port == "" {
		port = strconv.Itoa(httpsPort)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return controlplanev1.APIEndpoint{}, fmt.Errorf("the endpoint of the VirtualCluster has no port: %w", err)
	}
	return controlplanev1.APIEndpoint{Host: parsed.Hostname(), Port: int32(number)}, nil
}

// set sets a key of a map that may not exist yet.
func set(values *map[string]string, key, value string) {
	if *values == nil {
		*values = map[string]string{}
	}
	(*values)[key] = value
}
