package tenants

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/kubernetes/object"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// errNone is the error for objects that a tenant does not have.
var errNone = errors.New("not found")

// view is the part of a directory that pods of one network of a tenant see, with
// the tenant's names. It is what CoreDNS' plugin kubernetes takes for a connection
// to an apiserver.
type view struct {
	directory *Directory
	key       string
	since     time.Time
	// network is the name of the network. Unless it is known, the view has only
	// what all networks have.
	network string
	known   bool
}

// of returns the view of the pods of the tenant that have an address.
func (v *view) of(client netip.Addr) *view {
	of := *v
	of.network, of.known = v.directory.Network(client, v.key)
	return &of
}

// has reports whether a Service, in a namespace of the tenant, is in the view. All
// networks have those of the apiserver and of the DNS.
func (v *view) has(svc *service, namespace string) bool {
	if v.known && svc.network == v.network {
		return true
	}
	switch namespace {
	case metav1.NamespaceDefault:
		return svc.Name == names.APIService
	case metav1.NamespaceSystem:
		return svc.Name == names.DNSService
	}
	return false
}

// service returns the Service with a name and namespace of the tenant; nil if the
// view has none.
func (v *view) service(name, namespace string) *service {
	super := v.directory.superNamespace(v.key, namespace)
	if super == "" {
		return nil
	}
	if svc := v.directory.service(super, name); svc != nil && v.has(svc, namespace) {
		return svc
	}
	return nil
}

// SvcIndex returns the Service with a name and namespace of the tenant.
func (v *view) SvcIndex(index string) []*object.Service {
	name, namespace, _ := strings.Cut(index, ".")
	svc := v.service(name, namespace)
	if svc == nil {
		return nil
	}
	found := tenantsService(svc, namespace)
	if own := v.ownOf(svc); own != nil {
		found.ClusterIPs = own.ClusterIPs
	}
	return []*object.Service{found}
}

// ownOf returns the Service of the network that stands for one of the cluster; nil
// if there is none, or it does not lead anywhere yet.
func (v *view) ownOf(svc *service) *service {
	if !v.known {
		return nil
	}
	own := v.directory.service(svc.Namespace, svc.Name+"-"+v.network)
	if own == nil || own.standsFor != svc.Name || own.network != v.network {
		return nil
	}
	leads := func(slice *endpointSlice) bool { return len(slice.IndexIP) > 0 }
	if !slices.ContainsFunc(v.directory.slicesOf(own.Namespace, own.Name), leads) {
		return nil
	}
	return own
}

// SvcIndexReverse returns the tenant's Services with a cluster IP.
func (v *view) SvcIndexReverse(ip string) []*object.Service {
	var found []*object.Service
	for _, svc := range v.directory.servicesAt(ip) {
		if key, namespace := v.directory.owner(svc.Namespace); key == v.key && v.has(svc, namespace) {
			found = append(found, tenantsService(svc, namespace))
		}
	}
	return found
}

// EpIndex returns the endpoints of the Service with a name and namespace of the
// tenant.
func (v *view) EpIndex(index string) []*object.Endpoints {
	name, namespace, _ := strings.Cut(index, ".")
	svc := v.service(name, namespace)
	if svc == nil {
		return nil
	}
	var found []*object.Endpoints
	for _, slice := range v.directory.slicesOf(svc.Namespace, name) {
		found = append(found, tenantsEndpoints(slice, namespace))
	}
	return found
}

// EpIndexReverse returns the tenant's endpoints with an address.
func (v *view) EpIndexReverse(ip string) []*object.Endpoints {
	var found []*object.Endpoints
	for _, slice := range v.directory.slicesWith(ip) {
		key, namespace := v.directory.owner(slice.Namespace)
		if key == v.key && v.service(slice.service(), namespace) != nil {
			found = append(found, tenantsEndpoints(slice, namespace))
		}
	}
	return found
}

// GetNamespaceByName returns a namespace of the tenant.
func (v *view) GetNamespaceByName(name string) (*object.Namespace, error) {
	if v.directory.superNamespace(v.key, name) == "" {
		return nil, errNone
	}
	return &object.Namespace{Name: name}, nil
}

// tenantsService returns a Service in the namespace that the tenant knows. The
// original is shared and stays as it is.
func tenantsService(svc *service, namespace string) *object.Service {
	own := *svc.Service
	own.Namespace, own.Index = namespace, object.ServiceKey(svc.Name, namespace)
	return &own
}

// tenantsEndpoints does the same with endpoints.
func tenantsEndpoints(slice *endpointSlice, namespace string) *object.Endpoints {
	own := *slice.Endpoints
	own.Index = object.EndpointsKey(slice.service(), namespace)
	own.Namespace = namespace
	return &own
}

// HasSynced reports whether the directory is complete: before, a name that is
// not found may exist.
func (v *view) HasSynced() bool { return v.directory.HasSynced() }

// Modified returns the serial of the tenant's zone.
func (v *view) Modified(kubernetes.ModifiedMode) int64 { return v.since.Unix() }

// ServiceList returns nothing: it is for zone transfers, which are refused.
func (*view) ServiceList() []*object.Service { return nil }

// EndpointsList returns nothing, like ServiceList.
func (*view) EndpointsList() []*object.Endpoints { return nil }

// ServiceImportList returns nothing: Services of other clusters are not served.
func (*view) ServiceImportList() []*object.ServiceImport { return nil }

// SvcImportIndex returns nothing, like ServiceImportList.
func (*view) SvcImportIndex(string) []*object.ServiceImport { return nil }

// McEpIndex returns nothing, like ServiceImportList.
func (*view) McEpIndex(string) []*object.MultiClusterEndpoints { return nil }

// SvcExtIndexReverse returns nothing: external addresses have no names.
func (*view) SvcExtIndexReverse(string) []*object.Service { return nil }

// PodIndex returns nothing: the names of pods' addresses are answered without a
// look at pods.
func (*view) PodIndex(string) []*object.Pod { return nil }

// GetNodeByName returns no node: only zone transfers look for one.
func (*view) GetNodeByName(context.Context, string) (*corev1.Node, error) { return nil, errNone }

// Run does nothing: the directory runs for all tenants.
func (*view) Run() {}

// Stop does nothing, like Run.
func (*view) Stop() error { return nil }
