// Package chart tests the Helm chart with Helm's own packages.
package chart

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	chartDir  = root + "/charts/virtualcluster"
	namespace = "vc-system"
)

// everything turns on all that is optional.
const everything = `
image: {registry: registry.example/team, tag: v1, pullSecrets: [{name: registry}]}
serviceAddresses: {pool: 10.104.0.0/13, coreDNSImage: registry.example/coredns:1}
metrics: {serviceMonitors: {enabled: true, labels: {release: prometheus}}}
networkPolicies: {apiServerPorts: [443, 6443], apiServerCIDRs: [192.0.2.0/24]}
vcManager: {extraArgs: [--vmodule=a=1], logLevel: 2, priorityClassName: high, nodeSelector: {a: b}, tolerations: [{operator: Exists}],
  podLabels: {c: d}, podAnnotations: {e: f}, affinity: {nodeAffinity: {}}, image: {digest: "sha256:` + digest + `"}}
vcSyncer: {image: {repository: mirror.example/syncer}, podCIDRs: [10.244.0.0/16, "fd00::/56"], extraArgs: [--workers=32],
  networks: {enabled: true, internalCIDRs: [192.168.0.0/16], defaultTemplate: '{"metadata": {"name": "default"}, "spec": {"type": "flat"}}'}}
vnAgent: {enabled: true, tlsSecretName: agent, caSecretName: agent-ca, extraArgs: [--streams-per-tenant=9], service: {type: NodePort, annotations: {a: b}}}
vcHost: {advertiseAddress: "tenants.example:443", sleepAfterIdle: 1h,
  endpointDomain: tenants.example.com, endpointPort: 8443, podPorts: 10000-10999, clientsFrom: [{ipBlock: {cidr: 192.0.2.0/24}}],
  service: {type: LoadBalancer, port: 6443, nodePort: 30643, annotations: {a: b}},
  ingress: {enabled: true, className: haproxy, annotations: {haproxy-ingress.github.io/ssl-passthrough: "true"}, hosts: [shop.example.org]},
  gateway: {enabled: true, parentRefs: [{name: tenants, namespace: gateways, sectionName: tls}], hostnames: [shop.example.org]}}
vcStore: {replicas: 3, storage: {className: fast}, extraArgs: [--log-level=warn]}
vcDNS: {enabled: true}
convertedTenants: {enabled: true}
vcGateway: {enabled: true, url: "https://gw.example.com:8443", podURL: "https://192.0.2.7", domain: gw.example.com, defaultTenant: team/common, logLevel: 1,
  superCluster: Impersonation, impersonate: {users: [jane], groups: [developers]}, projects: true,
  service: {type: LoadBalancer, port: 8443, annotations: {a: b}}}
`

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// elect is the other way to run several syncers, and certManager the other
// certificate.
const (
	elect       = "vcSyncer: {shareTenants: false}"
	certManager = "webhook: {certManager: {enabled: true}}"
)

// render returns the objects of a release, by kind and name, and the notes.
func render(t *testing.T, values string) (map[string]*unstructured.Unstructured, string, error) {
	t.Helper()
	return renderIn(t, namespace, values)
}

// renderIn does the same for a release in another namespace.
func renderIn(t *testing.T, namespace, values string) (map[string]*unstructured.Unstructured, string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &set); err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "virtualcluster", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, set, release, common.DefaultCapabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), chart, all)
	if err != nil {
		return nil, "", err
	}
	objects, notes := map[string]*unstructured.Unstructured{}, ""
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = text
			continue
		}
		for _, obj := range parse(t, name, []byte(text)) {
			if objects[key(obj)] != nil {
				t.Errorf("%s is there twice", key(obj))
			}
			objects[key(obj)] = obj
		}
	}
	return objects, notes, nil
}

// mustRender does the same with values that the schema allows.
func mustRender(t *testing.T, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, _, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func key(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + obj.GetName() }

// parse reads all objects of a file.
func parse(t *testing.T, name string, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(data))
	for {
		obj := &unstructured.Unstructured{}
		switch err := decoder.Decode(obj); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatalf("%s: %v\n%s", name, err, data)
		case len(obj.Object) > 0:
			objects = append(objects, obj)
		}
	}
}

// typed returns all objects of a kind as their type, by name.
func typed[T any](t *testing.T, objects map[string]*unstructured.Unstructured, kind string) map[string]*T {
	t.Helper()
	all := map[string]*T{}
	for _, obj := range objects {
		if obj.GetKind() != kind {
			continue
		}
		into := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, into, true); err != nil {
			t.Fatalf("%s: %v", key(obj), err)
		}
		all[obj.GetName()] = into
	}
	if len(all) == 0 {
		t.Fatalf("there is no %s", kind)
	}
	return all
}

// TestNamespace: all objects of a release are in its namespace, and refer to it.
func TestNamespace(t *testing.T) {
	const other = "platform"
	for _, values := range variants {
		objects, _, err := renderIn(t, other, values)
		if err != nil {
			t.Fatal(err)
		}
		for name, obj := range objects {
			data, err := yaml.Marshal(obj.Object)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), namespace) {
				t.Errorf("%s refers to %s:\n%s", name, namespace, data)
			}
			// The last is the namespace of the gateway's default tenant.
			elsewhere := []string{other, "vc-syncer-replicas", "vc-host-replicas", "team"}
			if ns := obj.GetNamespace(); ns != "" && !slices.Contains(elsewhere, ns) && name != "RoleBinding vc-gateway-client-ca" {
				t.Errorf("%s is in %s", name, ns)
			}
		}
	}
}

func TestLint(t *testing.T) {
	for _, values := range []string{"", everything, elect, certManager} {
		set := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(values), &set); err != nil {
			t.Fatal(err)
		}
		lint := action.NewLint()
		lint.Strict = true
		for _, err := range lint.Run([]string{chartDir}, set).Errors {
			t.Errorf("with the values %q: %v", values, err)
		}
	}
}

// withoutChart removes what only the chart's objects have.
func withoutChart(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
		delete(labels, label)
	}
	delete(annotations, "helm.sh/resource-policy")
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
	}
	if len(labels) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "labels")
	}
	return obj
}

// kept reports whether an object is kept when the release is uninstalled.
func kept(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "CustomResourceDefinition" || obj.GetKind() == "ServiceCIDR" || key(obj) == "ClusterRole vc-syncer"
}

// TestObjectsAreThoseOfConfig: CRDs, roles, the webhook and the pool of Service
// addresses are the same with the chart and with kustomize.
func TestObjectsAreThoseOfConfig(t *testing.T) {
	objects := mustRender(t, everything)
	found := 0
	for _, pattern := range []string{"crd/*.yaml", "rbac/*/*.yaml", "webhook/*.yaml", "servicecidr/*.yaml", "dns/config.yaml", "converted/*.yaml", "converted/webhook/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, "config", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range parse(t, file, data) {
				if key(want) == "Namespace "+namespace {
					continue
				}
				found++
				got := objects[key(want)]
				if got == nil {
					t.Errorf("%s of %s is not in the chart", key(want), file)
					continue
				}
				if want.GetKind() == "Service" { // the chart names the port of its container
					continue
				}
				if diff := difference(withoutChart(want), withoutChart(got)); diff != "" {
					t.Errorf("%s of %s (-config +chart):\n%s", key(want), file, diff)
				}
			}
		}
	}
	if found < 25 {
		t.Errorf("%d objects were compared", found)
	}
	for name, obj := range objects {
		role := slices.Contains([]string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, obj.GetKind())
		if keep := obj.GetAnnotations()["helm.sh/resource-policy"]; (keep == "keep") != kept(obj) {
			t.Errorf("the resource policy of %s is %q", name, keep)
		}
		if role && obj.GetLabels()["helm.sh/chart"] == "" {
			t.Errorf("%s has the labels %v", name, slices.Sorted(maps.Keys(obj.GetLabels())))
		}
	}
}
