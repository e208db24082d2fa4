package chart

import (
	"slices"
	"strings"
	"testing"
)

// TestGateway: vc-manager has the URL and the CA of the gateway, whose
// certificate is for that URL.
func TestGateway(t *testing.T) {
	const ca = "--gateway-ca-file=/etc/vc-manager/gateway/ca.crt"
	for values, want := range map[string]struct{ manager, gateway []string }{
		"vcGateway: {enabled: true}": {
			[]string{"--gateway-url=https://vc-gateway.vc-system.svc:443", ca},
			[]string{"--tls-secret=vc-system/vc-gateway-tls", "--tls-hosts=vc-gateway.vc-system.svc"},
		},
		`vcGateway: {enabled: true, url: "https://gw.example.com:8443", domain: gw.example.com, defaultTenant: team/common}`: {
			[]string{"--gateway-url=https://gw.example.com:8443", ca},
			[]string{
				"--tls-secret=vc-system/vc-gateway-tls", "--tls-hosts=vc-gateway.vc-system.svc,gw.example.com,*.gw.example.com",
				"--domain=gw.example.com", "--default-tenant=team/common",
			},
		},
		`vcGateway: {enabled: true, url: "https://gw.example.com", tlsSecretName: gw, privateCA: false}`: {
			[]string{"--gateway-url=https://gw.example.com"},
			[]string{"--tls-cert-file=/etc/vc-gateway/tls/tls.crt", "--tls-private-key-file=/etc/vc-gateway/tls/tls.key"},
		},
	} {
		objects := mustRender(t, values)
		all := workloads(t, objects)
		gateway := all["vc-gateway"].template.Spec.Containers[0].Args
		for _, arg := range want.gateway {
			if !slices.Contains(gateway, arg) {
				t.Errorf("%s: the gateway has %v, want %s", values, gateway, arg)
			}
		}
		var manager []string
		for _, arg := range all["vc-manager"].template.Spec.Containers[0].Args {
			if strings.HasPrefix(arg, "--gateway") {
				manager = append(manager, arg)
			}
		}
		if !slices.Equal(manager, want.manager) {
			t.Errorf("%s: the manager has %v, want %v", values, manager, want.manager)
		}
	}
}

// TestGatewayReads: the gateway reads the Secrets for it, and creates nothing
// unless there is a default tenant.
func TestGatewayReads(t *testing.T) {
	for values, creates := range map[string]bool{
		"vcGateway: {enabled: true}":                             false,
		"vcGateway: {enabled: true, defaultTenant: team/common}": true,
	} {
		objects := mustRender(t, values)
		if _, found := objects["Role vc-gateway-default-tenant"]; found != creates {
			t.Errorf("%s: a role that creates VirtualClusters: %t, want %t", values, found, creates)
		}
	}
}
