package resources

import (
	"cmp"
	"net"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/internal/addresses"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// apiserverPort is the port of an apiserver's Service, whichever port the
// apiserver listens on.
const apiserverPort = "443"

// apiserverEnvironment returns the variables by which clients in a pod find the
// apiserver, as kubelets name them. A kubelet of the super cluster would set
// them to the super cluster's apiserver otherwise.
func apiserverEnvironment(t translate.Tenant) []corev1.EnvVar {
	host, port := apiserverAddress(t)
	if host == "" {
		return nil
	}
	address := "tcp://" + net.JoinHostPort(host, port)
	return []corev1.EnvVar{
		{Name: "KUBERNETES_SERVICE_HOST", Value: host},
		{Name: "KUBERNETES_SERVICE_PORT", Value: port},
		{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: port},
		{Name: "KUBERNETES_PORT", Value: address},
		{Name: "KUBERNETES_PORT_443_TCP", Value: address},
		{Name: "KUBERNETES_PORT_443_TCP_PROTO", Value: "tcp"},
		{Name: "KUBERNETES_PORT_443_TCP_PORT", Value: port},
		{Name: "KUBERNETES_PORT_443_TCP_ADDR", Value: host},
	}
}

// apiserverAddress returns the address of the tenant's apiserver for pods: that
// of its Service or, if it has none in the super cluster, that of its endpoint.
func apiserverAddress(t translate.Tenant) (host, port string) {
	if service := t.ServiceAddress(addresses.Apiserver); service.IsValid() {
		return service.String(), apiserverPort
	}
	endpoint, err := url.Parse(t.Endpoint)
	if err != nil {
		return "", ""
	}
	return endpoint.Hostname(), cmp.Or(endpoint.Port(), apiserverPort)
}

// addEnvironment adds the variables that a container does not set itself. They
// come first, since the container's own may refer to them.
func addEnvironment(c *corev1.Container, variables []corev1.EnvVar) {
	own := func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(c.Env, func(have corev1.EnvVar) bool { return have.Name == v.Name })
	}
	added := slices.DeleteFunc(slices.Clone(variables), own)
	c.Env = append(added, c.Env...)
}
