package kubeconfig

import "github.com/virtualcluster/virtualcluster/internal/names"

// ForAdmin returns the kubeconfig of a tenant's admin, of a Secret with its
// kubeconfigs: that of the control plane's own address or, for a tenant without
// one, that of the gateway.
func ForAdmin(secret map[string][]byte) []byte {
	if own := secret[names.AdminKubeconfigKey]; len(own) > 0 {
		return own
	}
	return secret[names.GatewayKubeconfigKey]
}

// ForUsers returns the kubeconfig that the users of a tenant get by default, of a
// Secret with its kubeconfigs: that of the control plane's own address, if it is
// of this control plane alone, and otherwise that of the gateway. Many clients
// ignore a TLS server name, by which control planes share an address.
func ForUsers(secret map[string][]byte) []byte {
	own, gateway := secret[names.AdminKubeconfigKey], secret[names.GatewayKubeconfigKey]
	if len(gateway) == 0 {
		return own
	}
	if cluster, _, err := current(own); err == nil && cluster.TLSServerName == "" {
		return own
	}
	return gateway
}
