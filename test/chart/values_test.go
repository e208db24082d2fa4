package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"maps"

	"sigs.k8s.io/yaml"
)

// TestSchema: values that Helm refuses, and what it says.
func TestSchema(t *testing.T) {
	for values, want := range map[string]string{
		"vcManger: {}":                                             "additional properties 'vcManger' not allowed",
		"vcManager: {replica: 3}":                                  "additional properties 'replica' not allowed",
		"vcManager: {replicas: two}":                               "/vcManager/replicas",
		"vcManager: {replicas: -1}":                                "/vcManager/replicas",
		"vcManager: {extraArgs: --leader-elect}":                   "/vcManager/extraArgs",
		"vcManager: {extraArgs: [leader-elect]}":                   "/vcManager/extraArgs",
		"vcManager: {defaultProvisioner: hosted}":                  "/vcManager/defaultProvisioner",
		"vcManager: {image: {digest: latest}}":                     "/vcManager/image/digest",
		"vcManager: {resources: {memory: 1Gi}}":                    "additional properties 'memory' not allowed",
		"vcSyncer: {podCIDRs: [10.244.0.0]}":                       "/vcSyncer/podCIDRs",
		"vcSyncer: {networks: {internalCIDRs: [all]}}":             "/vcSyncer/networks/internalCIDRs",
		"vcSyncer: {networks: {defaultTemplate: flat}}":            "/vcSyncer/networks/defaultTemplate",
		"serviceAddresses: {pool: all}":                            "/serviceAddresses/pool",
		"serviceAddresses: {secondaryPool: all}":                   "/serviceAddresses/secondaryPool",
		"image: {pullPolicy: Sometimes}":                           "/image/pullPolicy",
		"vnAgent: {enabled: true}":                                 "/vnAgent/tlsSecretName",
		"vnAgent: {address: agent.example}":                        "/vnAgent/address",
		"vcHost: {advertiseAddress: tenants.example}":              "/vcHost/advertiseAddress",
		"vcHost: {endpointDomain: \"*.example.com\"}":              "/vcHost/endpointDomain",
		"vcHost: {endpointDomain: example}":                        "/vcHost/endpointDomain",
		"vcHost: {endpointPort: 0}":                                "/vcHost/endpointPort",
		"vcHost: {podPorts: 20000}":                                "/vcHost/podPorts",
		"vcHost: {podPorts: 0-9}":                                  "/vcHost/podPorts",
		"vcHost: {clientsFrom: all}":                               "/vcHost/clientsFrom",
		"vcHost: {service: {type: ExternalName}}":                  "/vcHost/service/type",
		"vcHost: {ingress: {enabled: true}}":                       "/vcHost/endpointDomain",
		"vcHost: {ingress: {hosts: [a b]}}":                        "/vcHost/ingress/hosts",
		"vcHost: {gateway: {enabled: true}}":                       "/vcHost/gateway/parentRefs",
		"vcHost: {gateway: {apiVersion: v2}}":                      "/vcHost/gateway/apiVersion",
		"vcHost: {gateway: {parentRefs: [{namespace: a}]}}":        "/vcHost/gateway/parentRefs",
		"vcGateway: {url: gw.example.com}":                         "/vcGateway/url",
		"vcGateway: {podURL: \"http://192.0.2.7\"}":                "/vcGateway/podURL",
		"convertedTenants: {enabled: true}":                        "/vcGateway/enabled",
		"vcGateway: {defaultTenant: common}":                       "/vcGateway/defaultTenant",
		"vcGateway: {superCluster: All}":                           "/vcGateway/superCluster",
		"vcGateway: {impersonate: {groups: [\"system:masters\"]}}": "/vcGateway/impersonate/groups",
		"vcGateway: {projects: maybe}":                             "/vcGateway/projects",
		"vcGateway: {impersonate: {users: [\"\"]}}":                "/vcGateway/impersonate/users",
		"vcHost: {tenantIsolation: None}":                          "/vcHost/tenantIsolation",
		"vcHost: {sleepAfterIdle: 30}":                             "/vcHost/sleepAfterIdle",
		"vcStore: {replicas: 2}":                                   "/vcStore/replicas",
		"vcStore: {quotaGiB: 8Gi}":                                 "/vcStore/quotaGiB",
		"vcStore: {storage: {size: 10}}":                           "/vcStore/storage/size",
		"vcDNS: {enabled: true}":                                   "/serviceAddresses/pool",
		"networkPolicies: {apiServerPorts: [http]}":                "/networkPolicies/apiServerPorts",
		"webhook: {enabled: false, certManager: {enabled: true}}":  "/webhook/enabled",
	} {
		_, _, err := render(t, values)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
}

// TestSchemaIsStrict: the schema has exactly the values of values.yaml, and
// refuses others.
func TestSchemaIsStrict(t *testing.T) {
	var schema, values map[string]any
	data, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(filepath.Join(chartDir, "values.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, &values); err != nil {
		t.Fatal(err)
	}
	properties := schema["properties"].(map[string]any)
	delete(properties, "global") // Helm adds it to the values
	compare(t, "", schema, values)
}

func compare(t *testing.T, path string, schema, values map[string]any) {
	t.Helper()
	if schema["additionalProperties"] != false {
		t.Errorf("%s: the schema allows other values", path)
	}
	properties := schema["properties"].(map[string]any)
	known, set := slices.Sorted(maps.Keys(properties)), slices.Sorted(maps.Keys(values))
	if !slices.Equal(known, set) {
		t.Errorf("%s: the schema has %v, and values.yaml %v", path, known, set)
		return
	}
	for name, value := range values {
		property := properties[name].(map[string]any)
		nested, ok := value.(map[string]any)
		if ok && len(nested) > 0 && property["properties"] != nil {
			compare(t, path+"."+name, property, nested)
		}
	}
}

// TestNotes: the notes say what comes next.
func TestNotes(t *testing.T) {
	_, notes, err := render(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"kubectl -n vc-system rollout status deployment vc-manager vc-syncer", "kind: VirtualCluster", "vcSyncer.podCIDRs"} {
		if !strings.Contains(notes, part) {
			t.Errorf("%q is not in the notes:\n%s", part, notes)
		}
	}
}
