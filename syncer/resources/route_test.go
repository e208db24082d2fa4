package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// routesOf returns a kind of the Gateway API that is synced down.
func routesOf(t *testing.T, kind string) kinds.Down[*unstructured.Unstructured] {
	t.Helper()
	return kindOf[kinds.Down[*unstructured.Unstructured]](t, Custom(kinds.CustomResource{
		GVK:       schema.GroupVersionKind{Group: gatewayGroup, Version: "v1", Kind: kind},
		Direction: tenancyv1alpha1.SyncDown, Namespaced: true, Status: true,
	}))
}

// routeWith returns a route of the name web with a spec in YAML.
func routeWith(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	route := &unstructured.Unstructured{Object: map[string]any{}}
	var parsed any
	data, err := yaml.YAMLToJSON([]byte(spec))
	if err == nil {
		err = json.Unmarshal(data, &parsed)
	}
	if err != nil {
		t.Fatal(err)
	}
	route.Object["spec"] = parsed
	route.SetAPIVersion(gatewayGroup + "/v1")
	route.SetKind(kind)
	route.SetNamespace("default")
	route.SetName("web")
	return route
}

// offeringGateways returns the view of a tenant that is offered Gateways.
func offeringGateways(keys ...client.ObjectKey) kinds.View {
	v := view
	v.Offered = func(kind string) []client.ObjectKey {
		if kind != "Gateway.gateway.networking.k8s.io" {
			return nil
		}
		return keys
	}
	return v
}

var public = client.ObjectKey{Namespace: "edge", Name: "public"}

const (
	toPublic  = "parentRefs: [{namespace: edge, name: public}]"
	hostnames = "hostnames: [shop.example.com]"
)

// everyRouteField is a spec with every field that is synced down.
var everyRouteField = map[string]string{
	"HTTPRoute": `
parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: edge, name: public, sectionName: https, port: 443}]
hostnames: [shop.example.com, "*.shop.example.com"]
rules:
- name: all
  matches:
  - path: {type: PathPrefix, value: /}
    headers: [{type: Exact, name: a, value: b}]
    queryParams: [{type: Exact, name: a, value: b}]
    method: GET
  filters:
  - type: RequestHeaderModifier
    requestHeaderModifier: {set: [{name: a, value: b}], add: [{name: a, value: b}], remove: [c]}
    responseHeaderModifier: {set: [{name: a, value: b}], add: [{name: a, value: b}], remove: [c]}
  - type: RequestMirror
    requestMirror: {backendRef: {group: "", kind: Service, name: mirror, port: 80}, percent: 1, fraction: {numerator: 1, denominator: 2}}
  - type: RequestRedirect
    requestRedirect: {scheme: https, hostname: a.example.com, path: {type: ReplaceFullPath, replaceFullPath: /}, port: 443, statusCode: 301}
  - type: URLRewrite
    urlRewrite: {hostname: a.example.com, path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}
  - type: CORS
    cors: {allowOrigins: ["*"], allowCredentials: true, allowMethods: [GET], allowHeaders: [a], exposeHeaders: [b], maxAge: 5}
  backendRefs:
  - {group: "", kind: Service, name: web, port: 80, weight: 1, filters: [{type: RequestMirror, requestMirror: {backendRef: {name: other}}}]}
  timeouts: {request: 10s, backendRequest: 2s}
  retry: {codes: [500], attempts: 3, backoff: 1s}
  sessionPersistence: {sessionName: a, absoluteTimeout: 1h, idleTimeout: 1h, type: Cookie, cookieConfig: {lifetimeType: Session}}
`,
	"GRPCRoute": `
parentRefs: [{namespace: edge, name: public}]
hostnames: [shop.example.com]
rules:
- name: all
  matches: [{method: {type: Exact, service: a.B, method: C}, headers: [{type: Exact, name: a, value: b}]}]
  filters: [{type: RequestMirror, requestMirror: {backendRef: {name: mirror, port: 80}}}]
  backendRefs: [{name: web, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [c]}}]}, {name: other}]
  sessionPersistence: {sessionName: a}
`,
	"TLSRoute": `
parentRefs: [{namespace: edge, name: public}]
hostnames: [shop.example.com]
rules: [{name: all, backendRefs: [{name: web, port: 443, weight: 1}, {name: mirror}, {name: other}]}]
`,
}

func TestRoutesAreSyncedDown(t *testing.T) {
	for kind, spec := range everyRouteField {
		t.Run(kind, func(t *testing.T) {
			k, tenant := routesOf(t, kind), routeWith(t, kind, spec)
			tenant.Object["status"], tenant.Object["more"] = map[string]any{"parents": []any{}}, "of a newer version"
			was := tenant.DeepCopy()
			got, err := k.Desired(offeringGateways(public), tenant)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"apiVersion": gatewayGroup + "/v1", "kind": kind, "spec": was.Object["spec"]}
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Errorf("the copy (-want +got):\n%s", diff)
			}
			unchanged(t, "the tenant's route", was, tenant)

			refs := map[string]bool{}
			for _, ref := range k.References(tenant) {
				if ref.Kind != serviceKind || ref.Namespace != "" || ref.Required {
					t.Errorf("refers to %+v", ref)
				}
				refs[ref.Name] = true
			}
			if diff := cmp.Diff(map[string]bool{"web": true, "mirror": true, "other": true}, refs); diff != "" {
				t.Errorf("Services (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheNamespaceOfABackendIsLeftOut(t *testing.T) {
	tenant := routeWith(t, "HTTPRoute", toPublic+`
hostnames: [shop.example.com]
rules: [{backendRefs: [{name: web, namespace: default}]}]`)
	got, err := routesOf(t, "HTTPRoute").Desired(offeringGateways(public), tenant)
	if err != nil {
		t.Fatal(err)
	}
	want := routeWith(t, "HTTPRoute", toPublic+`
hostnames: [shop.example.com]
rules: [{backendRefs: [{name: web}]}]`)
	if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
}

func TestRoutesThatAreRejected(t *testing.T) {
	withRule := func(rule string) string { return toPublic + "\n" + hostnames + "\nrules: [" + rule + "]" }
	withParent := func(parent string) string { return "parentRefs: [" + parent + "]\n" + hostnames }
	notOffered := func(key string) string { return fmt.Sprintf("spec.parentRefs[0] is the Gateway %q", key) }
	const others = "only Services of the route's own namespace"
	for name, tt := range map[string]struct{ kind, spec, why string }{
		"no hosts":                     {"HTTPRoute", toPublic, "requests for all hosts"},
		"an empty list of hosts":       {"TLSRoute", toPublic + "\nhostnames: []", "requests for all hosts"},
		"hosts that are no texts":      {"HTTPRoute", toPublic + "\nhostnames: [5]", "requests for all hosts"},
		"an empty host":                {"GRPCRoute", toPublic + "\nhostnames: ['']", "requests for all hosts"},
		"a Gateway that is hidden":     {"HTTPRoute", withParent("{namespace: edge, name: hidden}"), notOffered("edge/hidden")},
		"a Gateway without namespace":  {"HTTPRoute", withParent("{name: public}"), notOffered("/public")},
		"another group":                {"HTTPRoute", withParent("{group: example.com, namespace: edge, name: public}"), "is of kind Gateway.example.com"},
		"a group that is no text":      {"HTTPRoute", withParent("{group: [], namespace: edge, name: public}"), "is of kind Gateway: attach"},
		"a Service as parent":          {"HTTPRoute", withParent(`{group: "", kind: Service, name: web}`), "is of kind Service"},
		"a set of listeners":           {"HTTPRoute", withParent("{kind: ListenerSet, namespace: edge, name: public}"), "ListenerSet.gateway.networking.k8s.io"},
		"a second parent":              {"HTTPRoute", withParent("{namespace: edge, name: public}, {namespace: edge, name: hidden}"), "spec.parentRefs[1]"},
		"default Gateways":             {"HTTPRoute", withParent("") + "\nuseDefaultGateways: All", "spec.useDefaultGateways is not synced"},
		"another namespace":            {"HTTPRoute", withRule("{backendRefs: [{name: web, namespace: kube-system}]}"), others},
		"an empty namespace":           {"HTTPRoute", withRule("{backendRefs: [{name: web, namespace: ''}]}"), others},
		"a namespace that is no text":  {"HTTPRoute", withRule("{backendRefs: [{name: web, namespace: 5}]}"), others},
		"a backend of another kind":    {"HTTPRoute", withRule("{backendRefs: [{name: web, kind: Secret}]}"), "is of kind Secret: only Services"},
		"a backend of another group":   {"TLSRoute", withRule("{backendRefs: [{name: web, group: example.com}]}"), "is of kind Service.example.com"},
		"a mirror elsewhere":           {"HTTPRoute", withRule("{filters: [{requestMirror: {backendRef: {name: web, namespace: other}}}]}"), others},
		"a mirror of a GRPCRoute":      {"GRPCRoute", withRule("{filters: [{requestMirror: {backendRef: {name: web, namespace: other}}}]}"), others},
		"a mirror of a backend":        {"HTTPRoute", withRule("{backendRefs: [{name: a, filters: [{requestMirror: {backendRef: {name: b, namespace: other}}}]}]}"), others},
		"an extension":                 {"HTTPRoute", withRule("{filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: c}}]}"), "filters[0].extensionRef is not synced"},
		"an extension of a backend":    {"GRPCRoute", withRule("{backendRefs: [{name: a, filters: [{extensionRef: {name: c}}]}]}"), "extensionRef is not synced"},
		"external authorization":       {"HTTPRoute", withRule("{filters: [{externalAuth: {backendRef: {name: web}}}]}"), "externalAuth is not synced"},
		"a redirect of gRPC":           {"GRPCRoute", withRule("{filters: [{requestRedirect: {}}]}"), "requestRedirect is not synced"},
		"a field of a newer version":   {"HTTPRoute", withRule("{}") + "\nnewRef: {name: a}", "spec.newRef is not synced"},
		"a new field of a match":       {"HTTPRoute", withRule("{matches: [{path: {value: /, ref: {}}}]}"), "spec.rules[0].matches[0].path.ref is not synced"},
		"an object instead of a text":  {"HTTPRoute", withRule("{matches: [{method: {ref: a}}]}"), "spec.rules[0].matches[0].method has not the fields"},
		"an object in a list of texts": {"HTTPRoute", withRule("{filters: [{cors: {allowOrigins: [{ref: a}]}}]}"), "allowOrigins[0] has not the fields"},
		"a text instead of an object":  {"HTTPRoute", withRule("a"), "spec.rules[0] has not the fields"},
		"a list in a list":             {"HTTPRoute", withRule("[{newRef: a}]"), "spec.rules[0] is a list"},
		"TCP":                          {"TCPRoute", withRule("{backendRefs: [{name: web}]}"), "only HTTPRoutes, GRPCRoutes and TLSRoutes"},
		"a Gateway":                    {"Gateway", "gatewayClassName: a", "only HTTPRoutes, GRPCRoutes and TLSRoutes"},
		"a grant for others":           {"ReferenceGrant", "from: []", "only HTTPRoutes, GRPCRoutes and TLSRoutes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := routesOf(t, tt.kind).Desired(offeringGateways(public), routeWith(t, tt.kind, tt.spec))
			if err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, %v, want an error with %q", got, err, tt.why)
			}
		})
	}
}

func TestManyBackendsAreRejected(t *testing.T) {
	leadingTo := func(number int) *unstructured.Unstructured {
		var backends []string
		for i := range number {
			backends = append(backends, fmt.Sprintf("{name: web-%d}", i))
		}
		return routeWith(t, "HTTPRoute", toPublic+"\n"+hostnames+"\nrules: [{backendRefs: ["+strings.Join(backends, ", ")+"]}]")
	}
	k := routesOf(t, "HTTPRoute")
	if _, err := k.Desired(offeringGateways(public), leadingTo(maxBackends)); err != nil {
		t.Errorf("%d Services: %v", maxBackends, err)
	}
	many := leadingTo(3 * maxBackends)
	if _, err := k.Desired(offeringGateways(public), many); !errors.Is(err, errManyBackends) {
		t.Errorf("%d Services: %v", 3*maxBackends, err)
	}
	if refs := k.References(many); len(refs) != maxBackends+1 {
		t.Errorf("%d references", len(refs))
	}
}

func TestChoicesAreFew(t *testing.T) {
	var keys []client.ObjectKey
	for i := range 7 {
		keys = append(keys, client.ObjectKey{Namespace: "edge", Name: fmt.Sprint(i)})
	}
	for want, offered := range map[string][]client.ObjectKey{
		"it offers none": nil,
		"choose one by its namespace and name, of edge/0":                                            keys[:1],
		"choose one by its namespace and name, of edge/0, edge/1, edge/2, edge/3, edge/4 and 2 more": keys,
	} {
		if got := choices(offered); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRoutesAndIngressesShareHosts: a host of an object of one kind is in use
// for another tenant's object of the other kind.
func TestRoutesAndIngressesShareHosts(t *testing.T) {
	const spec = toPublic + "\nhostnames: [shop.example.com, '*.red.example.com']"
	others := routeWith(t, "HTTPRoute", spec)
	others.SetAnnotations(map[string]string{names.Cluster: "red"})
	held := map[string]client.Object{}
	for _, claim := range routesOf(t, "HTTPRoute").Claims(others) {
		held[claim] = others
	}
	v := offeringGateways(public)
	v.Rivals = rivals(held)
	for host, taken := range map[string]bool{
		"shop.example.com": true, "*.example.com": true, "a.red.example.com": true, "other.example.com": false,
	} {
		_, err := routesOf(t, "TLSRoute").Desired(v, routeWith(t, "TLSRoute", toPublic+"\nhostnames: ['"+host+"']"))
		if (err != nil) != taken {
			t.Errorf("a TLSRoute with %s: %v", host, err)
		}
		err = ingressHosting.check(v, ingress("", serving(host)))
		if (err != nil) != taken {
			t.Errorf("an Ingress with %s: %v", host, err)
		}
	}

	ingresses := kindOf[kinds.Down[*networkingv1.Ingress]](t, Ingress())
	theirs := ingress("", serving("shop.example.com"))
	for _, claim := range ingresses.Claims(theirs) {
		v.Rivals = rivals(map[string]client.Object{claim: theirs})
		if _, err := routesOf(t, "HTTPRoute").Desired(v, routeWith(t, "HTTPRoute", toPublic+"\n"+hostnames)); (err != nil) != (claim == "shop.example.com") {
			t.Errorf("an HTTPRoute with the host of an Ingress, found by %q: %v", claim, err)
		}
	}
}

// TestHostsOfRoutesThatThePolicyNames checks that spec.policy.ingressHosts
// limits routes, too.
func TestHostsOfRoutesThatThePolicyNames(t *testing.T) {
	for name, tt := range map[string]struct {
		policy []string
		hosts  string
		why    string
	}{
		"a host":                {[]string{"*.red.example.com"}, "[a.red.example.com]", ""},
		"another host":          {[]string{"*.red.example.com"}, "[a.red.example.com, b.example.com]", "its host b.example.com is not allowed"},
		"every host":            {[]string{"*.red.example.com"}, "[]", "its host * is not allowed"},
		"every host is allowed": {[]string{"*"}, "[]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := offeringGateways(public)
			v.Tenant.Policy.IngressHosts = tt.policy
			_, err := routesOf(t, "HTTPRoute").Desired(v, routeWith(t, "HTTPRoute", toPublic+"\nhostnames: "+tt.hosts))
			if (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Errorf("rejected because of %v, want %q", err, tt.why)
			}
		})
	}
}

// TestTheStatusOfARoute: it keeps the parents as the tenant has written them,
// and has no names of the super cluster.
func TestTheStatusOfARoute(t *testing.T) {
	k := routesOf(t, "HTTPRoute")
	super := routeWith(t, "HTTPRoute", toPublic+"\n"+hostnames)
	parent := map[string]any{
		"parentRef":      map[string]any{"namespace": "edge", "name": "public"},
		"controllerName": "example.com/gateway",
		"conditions":     []any{map[string]any{"type": "ResolvedRefs", "message": "no Service " + superDefault + "/web"}},
	}
	super.Object["status"] = map[string]any{"parents": []any{parent}}
	tenant := routeWith(t, "HTTPRoute", toPublic+"\n"+hostnames)
	k.Status(view, tenant, super)
	want := map[string]any{"parents": []any{map[string]any{
		"parentRef": parent["parentRef"], "controllerName": "example.com/gateway",
		"conditions": []any{map[string]any{"type": "ResolvedRefs", "message": "no Service default/web"}},
	}}}
	if diff := cmp.Diff(want, tenant.Object["status"]); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
}

// TestStandingResourcesHaveClaimsOrAreOffered: nothing else needs all objects.
func TestStandingResourcesHaveClaimsOrAreOffered(t *testing.T) {
	kindOf := map[string]string{"httproutes": "HTTPRoute", "grpcroutes": "GRPCRoute", "tlsroutes": "TLSRoute", "gateways": "Gateway"}
	for _, s := range Standing() {
		resource, group, _ := strings.Cut(s.Definition, ".")
		k := Custom(kinds.CustomResource{
			GVK:       schema.GroupVersionKind{Group: group, Version: "v1", Kind: kindOf[resource]},
			Direction: s.Direction, Namespaced: true, Status: true,
		}).Erase()
		if (k.Down == nil || k.Down.Claims == nil) && (k.Up == nil || !k.Up.Offered) {
			t.Errorf("%s has no claims and is not offered", s.Definition)
		}
	}
}
