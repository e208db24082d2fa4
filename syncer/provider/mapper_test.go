package provider

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// builtinMapper maps the kinds that client-go knows, with the scopes of those
// that are synced.
func builtinMapper(t *testing.T) meta.RESTMapper {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	table, err := kinds.Table(resources.All(resources.Agent{}, nil), scheme)
	if err != nil {
		t.Fatal(err)
	}
	var clusterScoped []schema.GroupKind
	for _, k := range table {
		if k.ClusterScoped {
			clusterScoped = append(clusterScoped, k.GVK.GroupKind())
		}
	}
	return staticMapper(scheme, clusterScoped)
}

// TestBuiltinKinds checks the paths of kinds with an irregular plural or scope,
// as documented in the Kubernetes API reference.
func TestBuiltinKinds(t *testing.T) {
	mapper := builtinMapper(t)
	for _, tc := range []struct {
		group, version, kind, resource string
		scope                          meta.RESTScopeName
	}{
		{"", "v1", "Pod", "pods", meta.RESTScopeNameNamespace},
		{"", "v1", "Namespace", "namespaces", meta.RESTScopeNameRoot},
		{"", "v1", "Node", "nodes", meta.RESTScopeNameRoot},
		{"", "v1", "Endpoints", "endpoints", meta.RESTScopeNameNamespace},
		{"", "v1", "Event", "events", meta.RESTScopeNameNamespace},
		{"", "v1", "PersistentVolume", "persistentvolumes", meta.RESTScopeNameRoot},
		{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", meta.RESTScopeNameNamespace},
		{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", meta.RESTScopeNameNamespace},
		{"networking.k8s.io", "v1", "Ingress", "ingresses", meta.RESTScopeNameNamespace},
		{"networking.k8s.io", "v1", "IngressClass", "ingressclasses", meta.RESTScopeNameRoot},
		{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", meta.RESTScopeNameNamespace},
		{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", meta.RESTScopeNameNamespace},
		{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", meta.RESTScopeNameRoot},
		{"node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", meta.RESTScopeNameRoot},
		{"storage.k8s.io", "v1", "StorageClass", "storageclasses", meta.RESTScopeNameRoot},
		{"storage.k8s.io", "v1", "CSIDriver", "csidrivers", meta.RESTScopeNameRoot},
		{"storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", meta.RESTScopeNameRoot},
		{"resource.k8s.io", "v1", "DeviceClass", "deviceclasses", meta.RESTScopeNameRoot},
		{"resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", meta.RESTScopeNameNamespace},
		{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", meta.RESTScopeNameRoot},
		{"resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", meta.RESTScopeNameNamespace},
	} {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: tc.group, Kind: tc.kind}, tc.version)
		if err != nil {
			t.Errorf("%s: %v", tc.kind, err)
			continue
		}
		if mapping.Resource.Resource != tc.resource || mapping.Scope.Name() != tc.scope {
			t.Errorf("%s is the resource %s, of scope %s; want %s, %s",
				tc.kind, mapping.Resource.Resource, mapping.Scope.Name(), tc.resource, tc.scope)
		}
	}
}

func TestLearnedKinds(t *testing.T) {
	builtin := builtinMapper(t)
	own, other := newMapper(builtin), newMapper(builtin)
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Gateway"}
	if _, err := own.RESTMapping(gvk.GroupKind(), "v2"); !meta.IsNoMatchError(err) {
		t.Errorf("before it was learned: %v", err)
	}
	learned := &meta.RESTMapping{
		GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource("gatewaysess"), Scope: meta.RESTScopeNamespace,
	}
	own.learn(learned)
	for name, versions := range map[string][]string{"its version": {"v2"}, "its version among others": {"v1", "v2"}} {
		if got, err := own.RESTMapping(gvk.GroupKind(), versions...); err != nil || got != learned {
			t.Errorf("by %s: %v, %v", name, got, err)
		}
	}
	if got, err := own.RESTMappings(gvk.GroupKind(), "v2"); err != nil || len(got) != 1 || got[0] != learned {
		t.Errorf("all mappings: %v, %v", got, err)
	}
	// Another version, another group, and another tenant do not know it.
	for name, err := range map[string]error{
		"another version": second(own.RESTMapping(gvk.GroupKind(), "v1")),
		"another group":   second(own.RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gateway"}, "v2")),
		"another tenant":  second(other.RESTMapping(gvk.GroupKind(), "v2")),
	} {
		if !meta.IsNoMatchError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := own.RESTMapping(schema.GroupKind{Kind: "Pod"}, "v1"); err != nil || got.Resource.Resource != "pods" {
		t.Errorf("a built-in kind: %v, %v", got, err)
	}
	// A kind that is learned again replaces the previous mapping.
	again := &meta.RESTMapping{GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource("gateways"), Scope: meta.RESTScopeRoot}
	own.learn(again)
	if got, err := own.RESTMapping(gvk.GroupKind(), "v2"); err != nil || got != again {
		t.Errorf("learned again: %v, %v", got, err)
	}
}

func second(_ *meta.RESTMapping, err error) error { return err }
