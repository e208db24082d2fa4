package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
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
		`vcGateway: {enabled: true, podURL: "https://192.0.2.7:8443"}`: {
			[]string{"--gateway-url=https://vc-gateway.vc-system.svc:443", "--gateway-pod-url=https://192.0.2.7:8443", ca},
			[]string{"--tls-hosts=vc-gateway.vc-system.svc,192.0.2.7"},
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

// TestGatewayImpersonates: the gateway may be the users and groups of the super
// cluster that the values list, and no others.
func TestGatewayImpersonates(t *testing.T) {
	for values, want := range map[string]struct {
		arg   string
		rules []rbacv1.PolicyRule
	}{
		"superCluster: None, impersonate: {users: [jane]}":   {},
		"superCluster: Tokens, impersonate: {users: [jane]}": {arg: "--super-cluster=Tokens"},
		"superCluster: Impersonation":                        {arg: "--super-cluster=Impersonation"},
		"projects: true, impersonate: {users: [jane]}":       {arg: "--projects"},
		"superCluster: Impersonation, impersonate: {groups: [developers]}": {
			"--super-cluster=Impersonation", []rbacv1.PolicyRule{impersonate("groups", "developers")},
		},
		"superCluster: Impersonation, impersonate: {users: [jane, jo], groups: [developers]}": {
			"--super-cluster=Impersonation", []rbacv1.PolicyRule{impersonate("users", "jane", "jo"), impersonate("groups", "developers")},
		},
	} {
		objects := mustRender(t, "vcGateway: {enabled: true, "+values+"}")
		if args := workloads(t, objects)["vc-gateway"].template.Spec.Containers[0].Args; want.arg != "" != slices.Contains(args, want.arg) {
			t.Errorf("%s: the gateway has %v, want %q", values, args, want.arg)
		}
		_, reads := objects["RoleBinding vc-gateway-client-ca"]
		if reads != (strings.HasPrefix(values, "superCluster: Impersonation") || strings.HasPrefix(values, "projects")) {
			t.Errorf("%s: it reads the client CA: %t", values, reads)
		}
		var rules []rbacv1.PolicyRule
		if found := typed[rbacv1.ClusterRole](t, objects, "ClusterRole")["vc-gateway-impersonate"]; found != nil {
			rules = found.Rules
		}
		if diff := cmp.Diff(want.rules, rules); diff != "" {
			t.Errorf("%s: %s", values, diff)
		}
	}
}

func impersonate(resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"impersonate"}}
}
