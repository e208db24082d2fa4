package tenants

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/kubernetes/object"
)

// errNone is the error for objects that a tenant does not have.
var errNone = errors.New("not found")

// view is the part of a directory that belongs to one tenant, with the tenant's
// names. It is what CoreDNS' plugin kubernetes takes for a connection to an
// apiserver.
type view struct {
	directory *Directory
	key       string
	since     time.Time
}

// SvcIndex returns the Service with a name and namespace of the tenant.
func (v *view) SvcIndex(index string) []*object.Service {
	name, namespace, _ := strings.Cut(index, ".")
	super := v.directory.superNamespace(v.key, namespace)
	if super == "" {
		return nil
	}
	svc := v.directory.service(super, name)
	if svc == nil {
		return nil
	}
	return []*object.Service{tenantsService(svc, namespace)}
}

// SvcIndexReverse returns the tenant's Services with a cluster IP.
func (v *view) SvcIndexReverse(ip string) []*object.Service {
	var found []*object.Service
	for _, svc := range v.directory.servicesAt(ip) {
		if key, namespace := v.directory.owner(svc.Namespace); key == v.key {
			found = append(found, tenantsService(svc, namespace))
		}
	}
	return found
}

// EpIndex returns the endpoints of the Service with a name and namespace of the
// tenant.
func (v *view) EpIndex(index string) []*object.Endpoints {
	name, namespace, _ := strings.Cut(index, ".")
	super := v.directory.superNamespace(v.key, namespace)
	if super == "" {
		return nil
	}
	var found []*object.Endpoints
	for _, slice := range v.directory.slicesOf(super, name) {
		found = append(found, tenantsEndpoints(slice, namespace))
	}
	return found
}

// EpIndexReverse returns the tenant's endpoints with an address.
func (v *view) EpIndexReverse(ip string) []*object.Endpoints {
	var found []*object.Endpoints
	for _, slice := range v.directory.slicesWith(ip) {
		if key, namespace := v.directory.owner(slice.Namespace); key == v.key {
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
func tenantsService(svc *object.Service, namespace string) *object.Service {
	own := *svc
	own.Namespace, own.Index = namespace, object.ServiceKey(svc.Name, namespace)
	return &own
}

// tenantsEndpoints does the same with endpoints.
func tenantsEndpoints(slice *endpointSlice, namespace string) *object.Endpoints {
	own := *slice.Endpoints
	own.Index = object.EndpointsKey(strings.TrimSuffix(own.Index, "."+own.Namespace), namespace)
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
