package tenants

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coredns/coredns/plugin/kubernetes/object"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// reduced is the metadata that the cache of an object needs.
type reduced struct {
	*object.Empty

	namespace, name, version string
}

// GetNamespace implements metav1.Object.
func (r *reduced) GetNamespace() string { return r.namespace }

// GetName implements metav1.Object.
func (r *reduced) GetName() string { return r.name }

// GetResourceVersion implements metav1.Object.
func (r *reduced) GetResourceVersion() string { return r.version }

// SetNamespace does nothing: objects in a cache do not change.
func (*reduced) SetNamespace(string) {}

// SetName does nothing, like SetNamespace.
func (*reduced) SetName(string) {}

// SetResourceVersion does nothing, like SetNamespace.
func (*reduced) SetResourceVersion(string) {}

func reduceMeta(obj metav1.Object) reduced {
	return reduced{namespace: obj.GetNamespace(), name: obj.GetName(), version: obj.GetResourceVersion()}
}

// namespace is a namespace of a tenant in the super cluster.
type namespace struct {
	reduced

	// key is the cluster key of the tenant, origin the tenant's name of it.
	key, origin string
}

// pod is the copy of a tenant's pod.
type pod struct {
	reduced

	// network is the one of the tenant's networks that it is in.
	network     string
	hostNetwork bool
	addresses   []string
}

// service is the copy of a tenant's Service.
type service struct {
	*object.Service

	// network is the one of the tenant's networks that it is in.
	network string
	// standsFor is the name of the Service for which it is the network's; empty for
	// one of the tenant's own.
	standsFor string
}

// endpointSlice is an EndpointSlice of a tenant's Service.
type endpointSlice struct {
	*object.Endpoints

	// listener is set on the one that leads to this process.
	listener *listenerSpec
}

// service returns the name of the Service of an EndpointSlice.
func (s *endpointSlice) service() string { return strings.TrimSuffix(s.Index, "."+s.Namespace) }

// listenerSpec says where a tenant is answered, and for which domain.
type listenerSpec struct {
	port   uint16
	domain string
}

// reduce leaves of an object what DNS needs.
func reduce(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Namespace:
		a := o.Annotations
		return &namespace{reduceMeta(o), a[names.Cluster], a[names.Namespace]}, nil
	case *corev1.Service:
		network, standsFor := o.Labels[networkv1.Label], o.Labels[names.NetworkService]
		svc, err := object.ToService(withName(o))
		if err != nil {
			return nil, err
		}
		return &service{svc.(*object.Service), network, standsFor}, nil
	case *discoveryv1.EndpointSlice:
		listener := listenerSpecOf(o)
		slice, err := object.EndpointSliceToEndpoints(o)
		if err != nil {
			return nil, err
		}
		return &endpointSlice{slice.(*object.Endpoints), listener}, nil
	case *corev1.Pod:
		reduced := &pod{reduced: reduceMeta(o), network: o.Labels[networkv1.Label], hostNetwork: o.Spec.HostNetwork}
		for _, ip := range o.Status.PodIPs {
			reduced.addresses = append(reduced.addresses, ip.IP)
		}
		return reduced, nil
	default: // has been reduced already
		return obj, nil
	}
}

// withName returns the Service of type ExternalName whose copy has the name in an
// annotation, and others as they are.
func withName(svc *corev1.Service) *corev1.Service {
	if name, is := svc.Annotations[names.ExternalName]; is {
		svc.Spec.Type, svc.Spec.ExternalName = corev1.ServiceTypeExternalName, name
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
	}
	return svc
}

// listenerSpecOf returns what the EndpointSlice of the platform says of a tenant;
// nil for others. A tenant's objects have neither the name nor the label in the
// super cluster.
func listenerSpecOf(slice *discoveryv1.EndpointSlice) *listenerSpec {
	port, err := strconv.ParseUint(slice.Labels[names.DNSPort], 10, 16)
	if err != nil || port == 0 || slice.Name != names.SharedDNSSlice {
		return nil
	}
	return &listenerSpec{uint16(port), cmp.Or(slice.Annotations[names.DNSDomain], addresses.DefaultDomain)}
}
