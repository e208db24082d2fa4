package access

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Backend is a port of a pod of the super cluster that serves a tenant's
// apiserver.
type Backend struct {
	Namespace, Pod string
	Port           int32
}

// FindBackend finds the pod behind an address, which has to be one of a Service
// of the platform. The copies of tenants' Services are not considered.
func FindBackend(ctx context.Context, super client.Reader, address string) (Backend, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Backend{}, err
	}
	platform, err := labels.NewRequirement(names.VCName, selection.DoesNotExist, nil)
	if err != nil {
		return Backend{}, err
	}
	services := &corev1.ServiceList{}
	err = super.List(ctx, services, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*platform)})
	if err != nil {
		return Backend{}, fmt.Errorf("list the Services of the super cluster: %w", err)
	}
	for i := range services.Items {
		service := &services.Items[i]
		named, found := servicePort(service, host, port)
		if !found {
			continue
		}
		slices := &discoveryv1.EndpointSliceList{}
		err := super.List(ctx, slices, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
		if err != nil {
			return Backend{}, fmt.Errorf("list the EndpointSlices of Service %s/%s: %w", service.Namespace, service.Name, err)
		}
		if backend, found := backendOf(slices.Items, named); found {
			return backend, nil
		}
		return Backend{}, fmt.Errorf("find the pod of Service %s/%s, port %s: none is ready", service.Namespace, service.Name, port)
	}
	return Backend{}, fmt.Errorf("%s is the address of no Service of the super cluster", address)
}

// servicePort returns the name of the port of a Service that an address leads
// to.
func servicePort(service *corev1.Service, host, port string) (string, bool) {
	if !hasHost(service, host) {
		return "", false
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return "", false
	}
	for _, p := range service.Spec.Ports {
		if p.Port == int32(number) {
			return p.Name, true
		}
	}
	return "", false
}

// hasHost reports whether a Service is reached by a host name or an address.
func hasHost(service *corev1.Service, host string) bool {
	if host == "" {
		return false // no ingress has both an address and a name
	}
	name := service.Name + "." + service.Namespace
	if host == name || host == name+".svc" || strings.HasPrefix(host, name+".svc.") {
		return true
	}
	if slices.Contains(service.Spec.ClusterIPs, host) || slices.Contains(service.Spec.ExternalIPs, host) {
		return true
	}
	return slices.ContainsFunc(service.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool {
		return host == i.IP || host == i.Hostname
	})
}

// backendOf returns a ready pod of EndpointSlices, with the number of the port
// of a name.
func backendOf(slices []discoveryv1.EndpointSlice, port string) (Backend, bool) {
	for _, slice := range slices {
		for _, p := range slice.Ports {
			if ptr.Deref(p.Name, "") != port || p.Port == nil {
				continue
			}
			for _, e := range slice.Endpoints {
				if ref := e.TargetRef; ref != nil && ref.Kind == "Pod" && ptr.Deref(e.Conditions.Ready, true) {
					return Backend{Namespace: ref.Namespace, Pod: ref.Name, Port: *p.Port}, true
				}
			}
		}
	}
	return Backend{}, false
}
