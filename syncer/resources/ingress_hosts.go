package resources

import (
	"cmp"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// ingressHosting is how Ingresses have hosts.
var ingressHosting = hosting[*networkingv1.Ingress]{
	kind: ingressKind,
	of:   func(ingress *networkingv1.Ingress) []string { return ingressHosts(&ingress.Spec) },
	hint: "name a host in each rule and in each entry of spec.tls, and omit spec.defaultBackend",
}

// ingressHosts returns the hosts that an ingress serves or has a certificate
// for. A * matches any number of labels: one according to the specification,
// but several in some controllers.
func ingressHosts(spec *networkingv1.IngressSpec) []string {
	var hosts []string
	seen := sets.New[string]()
	add := func(host string) {
		host = cmp.Or(host, everyHost)
		if !seen.Has(host) {
			hosts = append(hosts, host)
		}
		seen.Insert(host)
	}
	if spec.DefaultBackend != nil {
		add(everyHost)
	}
	for _, rule := range spec.Rules {
		add(rule.Host)
	}
	for _, tls := range spec.TLS {
		if len(tls.Hosts) == 0 {
			add(everyHost)
		}
		for _, host := range tls.Hosts {
			add(host)
		}
	}
	return hosts
}
