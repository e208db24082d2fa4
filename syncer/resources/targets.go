package resources

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// maxNamedTargets is the maximum number of addresses in a rejection.
const maxNamedTargets = 5

// targets decides to which addresses the endpoints of a tenant may direct
// traffic: to the tenant's own pods, to its own apiserver, and to the networks
// that its policy allows. Nodes, load balancers and Ingress controllers of the
// super cluster can reach other addresses, which a tenant must not expose
// (CVE-2021-25740).
type targets struct {
	view kinds.View
	// omitted are the addresses that are not allowed.
	omitted []string
}

// port is a port of endpoints; number is nil for all ports.
type port struct {
	protocol corev1.Protocol
	number   *int32
}

// allows reports whether endpoints with these ports may have an address, and
// records the address if not.
func (t *targets) allows(address string, ports []port) bool {
	if t.view.RunsAt(address) || inCIDRs(t.view.Tenant.Policy.EndpointCIDRs, address) || t.isApiserver(address, ports) {
		return true
	}
	t.omitted = append(t.omitted, address)
	return false
}

// isApiserver reports whether ports of an address are the port of the tenant's
// own apiserver, and no other.
func (t *targets) isApiserver(address string, ports []port) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil || len(ports) == 0 {
		return false
	}
	for _, p := range ports {
		if p.number == nil || p.protocol != corev1.ProtocolTCP || *p.number < 1 || *p.number > 65535 ||
			!t.view.Tenant.ServesAt(netip.AddrPortFrom(ip, uint16(*p.number))) {
			return false
		}
	}
	return true
}

// keptEndpoints returns an error if the platform keeps the endpoints of a Service
// of the tenant, and an object with endpoints for it is another than the
// platform's, which has the name of the Service.
func keptEndpoints(v kinds.View, obj client.Object, service string) error {
	key := v.Tenant.SuperKey(client.ObjectKey{Namespace: obj.GetNamespace(), Name: service})
	found, _ := v.Lookup(schema.GroupKind{Kind: serviceKind}, key, "").(*corev1.Service)
	if found == nil || found.Annotations[names.NetworkService] == "" ||
		obj.GetName() == service && obj.GetAnnotations()[names.NetworkService] != "" {
		return nil
	}
	return fmt.Errorf("the platform keeps the endpoints of Service %s, which belongs to a network; create another Service", service)
}

// err returns an error with the addresses that are not allowed; nil if all are.
func (t *targets) err() error {
	if len(t.omitted) == 0 {
		return nil
	}
	named := t.omitted[:min(len(t.omitted), maxNamedTargets)]
	more := ""
	if n := len(t.omitted) - len(named); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("endpoints may lead to the pods of this cluster: %s%s are none of theirs, nor in spec.policy.endpointCIDRs",
		strings.Join(named, ", "), more)
}
