package escapes

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// hostileKind is a kind for which hostile tenants send requests, with a document.
type hostileKind struct {
	path, resource, kind, spec string
	cluster                    bool
}

// version is the API version of the kind.
func (k hostileKind) version() string {
	return strings.TrimPrefix(strings.TrimPrefix(k.path, "/apis/"), "/api/")
}

// isAnswered reports whether the gateway answers, and nothing is stored.
func (k hostileKind) isAnswered() bool { return k.path == reviewGroup || k.path == tokenGroup }

// Paths of the API groups of the kinds.
const (
	apps         = "/apis/apps/v1"
	rbacGroup    = "/apis/rbac.authorization.k8s.io/v1"
	admitGroup   = "/apis/admissionregistration.k8s.io/v1"
	storageGroup = "/apis/storage.k8s.io/v1"
	reviewGroup  = "/apis/authorization.k8s.io/v1"
	tokenGroup   = "/apis/authentication.k8s.io/v1"
	customGroup  = "/apis/example.com/v1"
)

const (
	podSpec     = `"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"%s"}]}`
	podTemplate = `"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","image":"%s"}]}}`
	workload    = `"spec":{"selector":{"matchLabels":{"app":"web"}},` + podTemplate + `}`
	viewers     = `"roleRef":{"kind":"ClusterRole","name":"view","apiGroup":"rbac.authorization.k8s.io"},"subjects":[{"kind":"User","name":"%s"}]`
	readers     = `"rules":[{"apiGroups":[""],"resources":["%s"],"verbs":["get"]}]`
	webhooks    = `"webhooks":[{"name":"a.example.com","clientConfig":{"url":"https://%s.example.com"},"sideEffects":"None","admissionReviewVersions":["v1"],` +
		`"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]}]`
	bound = `"spec":{"policyName":"a","validationActions":["Deny"],"matchResources":{"namespaceSelector":{"matchLabels":{"a":"%s"}}}}`
	asked = `"spec":{"user":"%s","resourceAttributes":{"verb":"list","resource":"secrets","namespace":"shop"}}`
)

var hostileKinds = []hostileKind{
	{"/api/v1", "configmaps", "ConfigMap", `"data":{"a":"%s"}`, false},
	{"/api/v1", "secrets", "Secret", `"stringData":{"a":"%s"}`, false},
	{"/api/v1", "pods", "Pod", `"spec":{"containers":[{"name":"a","image":"%s","env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.namespace"}}}]}]}`, false},
	{"/api/v1", "podtemplates", "PodTemplate", podTemplate, false},
	{"/api/v1", "replicationcontrollers", "ReplicationController", `"spec":{"replicas":0,"selector":{"app":"web"},` + podTemplate + `}`, false},
	{"/api/v1", "services", "Service", `"spec":{"type":"ExternalName","externalName":"%s.example.com"}`, false},
	{"/api/v1", "endpoints", "Endpoints", `"subsets":[{"addresses":[{"ip":"192.0.2.1","hostname":"%s"}]}]`, false},
	{"/api/v1", "serviceaccounts", "ServiceAccount", `"imagePullSecrets":[{"name":"%s"}]`, false},
	{"/api/v1", "events", "Event", `"message":"%s","involvedObject":{"kind":"Pod","name":"a","namespace":"shop"}`, false},
	{"/api/v1", "resourcequotas", "ResourceQuota", `"spec":{"hard":{"count/%s.example.com":"5"}}`, false},
	{"/api/v1", "limitranges", "LimitRange", `"spec":{"limits":[{"type":"Pod","max":{"example.com/%s":"5"}}]}`, false},
	{
		"/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim",
		`"spec":{"storageClassName":"%s","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`, false,
	},
	{"/api/v1", "persistentvolumes", "PersistentVolume", `"spec":{"hostPath":{"path":"/%s"}}`, true},
	{
		"/apis/certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest",
		`"spec":{"request":"%s","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}`, true,
	},
	{"/apis/networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", `"spec":{"cidrs":["10.0.0.0/%s"]}`, true},
	{"/api/v1", "namespaces", "Namespace", `"spec":{}`, true},
	{"/api/v1", "nodes", "Node", `"spec":{}`, true},
	{apps, "deployments", "Deployment", workload, false},
	{apps, "statefulsets", "StatefulSet", strings.Replace(workload, `"spec":{`, `"spec":{"replicas":0,`, 1), false},
	{apps, "replicasets", "ReplicaSet", strings.Replace(workload, `"spec":{`, `"spec":{"replicas":0,`, 1), false},
	{apps, "daemonsets", "DaemonSet", workload, false},
	{apps, "controllerrevisions", "ControllerRevision", `"revision":1,"data":{"a":"%s"}`, false},
	{"/apis/batch/v1", "jobs", "Job", `"spec":{"suspend":true,"template":{` + podSpec + `}}`, false},
	{"/apis/batch/v1", "cronjobs", "CronJob", `"spec":{"schedule":"0 0 1 1 *","jobTemplate":{"spec":{"template":{` + podSpec + `}}}}`, false},
	{
		"/apis/autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
		`"spec":{"maxReplicas":2,"scaleTargetRef":{"apiVersion":"example.com/v1","kind":"Widget","name":"%s"}}`, false,
	},
	{"/apis/policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", `"spec":{"selector":{"matchLabels":{"app":"%s"}}}`, false},
	{
		"/apis/networking.k8s.io/v1", "networkpolicies", "NetworkPolicy",
		`"spec":{"podSelector":{"matchLabels":{"app":"%s"}},"ingress":[{"from":[{"namespaceSelector":{}}]}]}`, false,
	},
	{
		"/apis/networking.k8s.io/v1", "ingresses", "Ingress",
		`"spec":{"defaultBackend":{"service":{"name":"%s","port":{"number":80}}}}`, false,
	},
	{"/apis/networking.k8s.io/v1", "ingressclasses", "IngressClass", `"spec":{"controller":"example.com/%s"}`, true},
	{"/apis/discovery.k8s.io/v1", "endpointslices", "EndpointSlice", `"addressType":"FQDN","endpoints":[{"addresses":["%s.example.com"]}]`, false},
	{"/apis/coordination.k8s.io/v1", "leases", "Lease", `"spec":{"holderIdentity":"%s"}`, false},
	{"/apis/events.k8s.io/v1", "events", "Event", `"note":"%s","regarding":{"kind":"Pod","name":"a","namespace":"shop"}`, false},
	{
		"/apis/resource.k8s.io/v1", "resourceclaims", "ResourceClaim",
		`"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"%s"}}]}}`, false,
	},
	{"/apis/resource.k8s.io/v1", "deviceclasses", "DeviceClass", `"spec":{"selectors":[{"cel":{"expression":"device.driver == '%s'"}}]}`, true},
	{"/apis/scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", `"value":1,"description":"%s"`, true},
	{"/apis/node.k8s.io/v1", "runtimeclasses", "RuntimeClass", `"handler":"%s"`, true},
	{storageGroup, "storageclasses", "StorageClass", `"provisioner":"example.com/%s"`, true},
	{storageGroup, "csidrivers", "CSIDriver", `"spec":{"tokenRequests":[{"audience":"%s"}]}`, true},
	{storageGroup, "csistoragecapacities", "CSIStorageCapacity", `"storageClassName":"%s"`, false},
	{"/apis/flowcontrol.apiserver.k8s.io/v1", "flowschemas", "FlowSchema", `"spec":{"priorityLevelConfiguration":{"name":"%s"}}`, true},
	{rbacGroup, "roles", "Role", readers, false},
	{rbacGroup, "rolebindings", "RoleBinding", viewers, false},
	{rbacGroup, "clusterroles", "ClusterRole", readers, true},
	{rbacGroup, "clusterrolebindings", "ClusterRoleBinding", viewers, true},
	{admitGroup, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", webhooks, true},
	{admitGroup, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", webhooks, true},
	{
		admitGroup, "validatingadmissionpolicies", "ValidatingAdmissionPolicy",
		`"spec":{"validations":[{"expression":"object.metadata.name != '%s'"}]}`, true,
	},
	{admitGroup, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", bound, true},
	{"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", `"spec":{"group":"%s.example.com"}`, true},
	{customGroup, "widgets", "Widget", `"spec":{"a":"%s"},"status":{"a":"b"}`, false},
	{customGroup, "gadgets", "Gadget", `"spec":{"a":"%s"}`, true},
	{reviewGroup, "subjectaccessreviews", "SubjectAccessReview", asked, true},
	{reviewGroup, "localsubjectaccessreviews", "LocalSubjectAccessReview", asked, false},
	{reviewGroup, "selfsubjectrulesreviews", "SelfSubjectRulesReview", `"spec":{"namespace":"shop"}`, true},
	{tokenGroup, "tokenreviews", "TokenReview", `"spec":{"token":"%s"}`, true},
}

// randomRequest is a random request.
type randomRequest struct {
	method, path, body string
	headers            []string
	// document is the body before it was encoded.
	document string
}

func (r randomRequest) String() string {
	return fmt.Sprintf("%s %s %v %s", r.method, r.path, r.headers, r.document)
}

// tokens are those to continue lists that any tenant got.
type tokens struct {
	mu  sync.Mutex
	all []string
}

func (t *tokens) add(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 20
	t.all = append(t.all[max(0, len(t.all)-most):], token)
}

func (t *tokens) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// hostility makes random requests.
type hostility struct {
	*rand.Rand

	tokens *tokens
}

func (h *hostility) of(list ...string) string { return list[h.IntN(len(list))] }

// one reports true for one of a number of calls.
func (h *hostility) one(number int) bool { return h.IntN(number) == 0 }

// request makes one of a tenant.
func (h *hostility) request(t *rival) randomRequest {
	if h.one(25) {
		return randomRequest{method: http.MethodGet, path: h.other(t), headers: []string{"Accept", h.accept()}}
	}
	kind := hostileKinds[h.IntN(len(hostileKinds))]
	namespace := h.of("shop", "shop", "shop", "b-shop", "b", t.other.super(untouched), t.other.super("shop"), t.other.Key, "fuzz-platform", "kube-system", "..", "%2e%2e", "*")
	method := h.of(http.MethodGet, http.MethodGet, http.MethodGet, http.MethodPost, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodPatch, http.MethodDelete)
	collection := method == http.MethodPost || method == http.MethodGet && h.one(2) || method == http.MethodDelete && h.one(8)
	if kind.kind == "CustomResourceDefinition" && method == http.MethodDelete {
		collection = false // the custom resources of the tenant would be gone
	}
	name := h.name(t, kind, method)
	path := h.prefix(kind) + "/namespaces/" + namespace + "/" + kind.resource
	if kind.cluster || h.one(6) {
		path = h.prefix(kind) + "/" + kind.resource
	}
	if !collection {
		path += "/" + name
		if h.one(6) {
			path += "/" + h.of("status", "scale", "eviction", "log", "token", "finalize", "binding", "ephemeralcontainers", "resize", "exec", "proxy", "x")
		}
	}
	made := randomRequest{method: method, path: path + "?" + h.query(t, collection).Encode()}
	switch method {
	case http.MethodPost, http.MethodPut:
		h.body(&made, h.document(t, kind, namespace, name))
	case http.MethodPatch:
		h.patch(&made, t, kind, namespace, name)
	}
	made.headers = append(made.headers, "Accept", h.accept())
	if h.one(20) {
		made.headers = append(made.headers, h.of("Impersonate-User", "X-Remote-User", "X-Remote-Group"), h.of("system:masters", "anna"))
	}
	return made
}

// other is the path of something that is no object, or that only the super
// cluster has.
func (h *hostility) other(t *rival) string {
	others := names.ConvertedGroup(t.other.Key) + "example.com"
	return h.of("/api", "/apis", customGroup, "/api/v1", "/openapi/v3", "/openapi/v3"+customGroup, "/version", "/healthz", "/readyz?verbose", "/metrics", "/logs/",
		"/debug/pprof/", "/apis/"+others, "/apis/"+others+"/v1/widgets", "/apis/"+others+"/v1/gadgets/hidden", "/openapi/v3/apis/"+others+"/v1",
		"/apis/"+names.ShelvedGroup+"/v1/clusterroles", "/apis/"+names.ShelvedGroup+"/v1/namespaces/"+t.other.Key+"/clusterroles",
		"/apis/tenancy.x-k8s.io/v1alpha1/virtualclusters", "/apis/apiregistration.k8s.io/v1/apiservices")
}

// name is one of an object that exists, or may.
func (h *hostility) name(t *rival, kind hostileKind, method string) string {
	switch kind.kind {
	case "Namespace":
		return h.of("b", "c", "b-b", t.other.super(untouched), "fuzz-platform", t.other.Key)
	case "CustomResourceDefinition":
		others := "widgets." + names.ConvertedGroup(t.other.Key) + "example.com"
		if method == http.MethodDelete {
			return h.of(others, "virtualclusters.tenancy.x-k8s.io", "roles."+names.ShelvedGroup, "..")
		}
		return h.of("widgets.example.com", "gadgets.example.com", others, "virtualclusters.tenancy.x-k8s.io")
	}
	return h.of("a", "b", "c", "hidden", "fuzz-hidden", "fuzz-offered", "system:x", "view", t.other.super(untouched), names.IsolationPolicy, "kube-root-ca.crt", "..")
}

// prefix is the path of an API group, or the one that watched in the past.
func (h *hostility) prefix(kind hostileKind) string {
	if h.one(40) {
		return kind.path + "/watch"
	}
	return kind.path
}

func (h *hostility) accept() string {
	return h.of("application/json", "application/json", "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
		"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json", "application/cbor", "application/yaml")
}

func (h *hostility) query(t *rival, many bool) url.Values {
	query := url.Values{}
	maybe := func(one int, parameter string, values ...string) {
		if h.one(one) {
			query.Set(parameter, h.of(values...))
		}
	}
	maybe(8, "dryRun", "All", "None")
	maybe(6, "fieldManager", "m", "kubectl")
	maybe(6, "force", "true")
	maybe(8, "fieldValidation", "Strict", "Warn")
	maybe(10, "resourceVersion", "0", "1", "999999999")
	maybe(8, "includeObject", "Object", "None", "Metadata")
	maybe(8, "propagationPolicy", "Foreground", "Background", "Orphan")
	if h.one(60) { // with each verb
		query.Set("watch", h.of("1", "true"))
		query.Set("timeoutSeconds", "1")
		maybe(2, "sendInitialEvents", "true")
		maybe(2, "resourceVersionMatch", "NotOlderThan")
		maybe(2, "allowWatchBookmarks", "true")
	}
	if !many {
		return query
	}
	maybe(4, labelSelector, "!"+names.Converted, names.Converted, names.Converted+"!=x", "treasure", "treasure="+t.other.treasure,
		"app=web", "app", names.VCName+"=converted", "kubernetes.io/metadata.name")
	maybe(4, "fieldSelector", "metadata.namespace="+t.other.super(untouched), "metadata.namespace!=shop", "metadata.name=hidden",
		"involvedObject.namespace="+t.other.super(untouched), "metadata.namespace=", "status.phase=Pending", "metadata.name!=a")
	maybe(3, "limit", "1", "2", "0", "-1")
	if tokens := h.tokens.list(); len(tokens) > 0 && h.one(4) {
		token := h.of(tokens...)
		if h.one(4) {
			token = token[:len(token)-1]
		}
		query.Set("continue", token)
	}
	return query
}

// labelSelector is the parameter of the query.
const labelSelector = "labelSelector"

// document is one of a tenant, which may point to others.
func (h *hostility) document(t *rival, kind hostileKind, namespace, name string) string {
	spec := kind.spec
	if strings.Contains(name, t.other.Key) {
		name = "a" // or the tenant's own object would show it
	}
	if strings.Contains(spec, "%s") {
		spec = fmt.Sprintf(spec, t.treasure)
	}
	if kind.isAnswered() {
		return `{"apiVersion":"` + kind.version() + `","kind":"` + kind.kind + `","metadata":{},` + spec + `}` // which the answer repeats
	}
	metadata := h.of(`"name":"`+name+`"`, `"name":"`+name+`"`, `"generateName":"b-"`)
	metadata += h.of("", `,"namespace":"`+namespace+`"`, `,"namespace":"`+t.other.super(untouched)+`"`, `,"namespace":"shop"`)
	metadata += h.of("", `,"labels":{"treasure":"`+t.treasure+`"}`, `,"labels":{"treasure":"`+t.treasure+`","`+names.Converted+`":"x"}`, `,"labels":null`)
	metadata += h.of("", `,"annotations":{"a":"`+t.treasure+`"}`, `,"annotations":{"`+names.Namespace+`":"x"}`, `,"managedFields":[]`)
	metadata += h.of("", "", `,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"hidden","uid":"1"}]`,
		`,"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"b","uid":"1"}]`)
	return `{"apiVersion":"` + kind.version() + `","kind":"` + kind.kind + `","metadata":{` + metadata + `},` + spec + `}`
}

// body gives a request a document in a format.
func (h *hostility) body(r *randomRequest, document string) {
	format := h.of("application/json", "application/json", "application/yaml", runtime.ContentTypeProtobuf, "application/cbor")
	r.headers, r.body, r.document = append(r.headers, "Content-Type", format), document, document
	if format == runtime.ContentTypeProtobuf {
		r.body = h.protobuf(document)
	}
}

// protobuf is a document in protobuf, which may be damaged. One of a kind that has
// no such format is in JSON, in an envelope of protobuf.
func (h *hostility) protobuf(document string) string {
	encoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
	if err != nil || h.one(8) {
		var typed runtime.TypeMeta
		_ = json.Unmarshal([]byte(document), &typed) // it is an object
		object = &runtime.Unknown{TypeMeta: typed, Raw: []byte(document), ContentType: runtime.ContentTypeJSON}
	}
	encoded, err := runtime.Encode(encoder, object)
	if err != nil {
		return document
	}
	if h.one(10) {
		encoded = encoded[:h.IntN(len(encoded))]
	}
	return string(encoded)
}

func (h *hostility) patch(r *randomRequest, t *rival, kind hostileKind, namespace, name string) {
	defer func() { r.document = r.body }()
	switch h.IntN(4) {
	case 0:
		r.headers, r.body = []string{"Content-Type", "application/apply-patch+yaml"}, h.document(t, kind, namespace, name)
	case 1:
		r.headers, r.body = []string{"Content-Type", "application/json-patch+json"}, "["+h.of(
			`{"op":"remove","path":"/metadata/labels"}`, `{"op":"replace","path":"/metadata/namespace","value":"`+t.other.super(untouched)+`"}`,
			`{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}`, `{"op":"add","path":"/metadata/labels/a","value":"b"}`,
			`{"op":"test","path":"/metadata/labels/tenancy.x-k8s.io~1converted","value":"x"}`, `{"op":"move","from":"/metadata/annotations","path":"/data"}`)+"]"
	case 2:
		r.headers = []string{"Content-Type", h.of("application/merge-patch+json", "application/strategic-merge-patch+json")}
		r.body = h.document(t, kind, namespace, name)
	case 3:
		r.headers = []string{"Content-Type", h.of("application/merge-patch+json", "application/strategic-merge-patch+json")}
		r.body = `{"metadata":{` + h.of(`"labels":null`, `"labels":{"$patch":"replace"}`, `"annotations":null`, `"managedFields":[{}]`,
			`"labels":{"`+names.Converted+`":null}`, `"annotations":{"`+names.Namespace+`":null}`, `"ownerReferences":null`) + `}}`
	}
}
