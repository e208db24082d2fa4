package projects

import (
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/streaming/pkg/httpstream"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

const (
	// minWatch is how long a watch lasts at least, unless its client asks for less:
	// up to twice as long.
	minWatch = 30 * time.Minute
	// maxBody is the size of a request in bytes.
	maxBody = 64 << 10
)

// route is a verb of a resource.
type route struct{ resource, verb string }

// Handler serves the API of projects: discovery, get, list, watch and delete of
// projects, and create of requests for them, by the handlers of an apiserver.
type Handler struct {
	infos     *request.RequestInfoFactory
	codecs    serializer.CodecFactory
	discovery *http.ServeMux
	routes    map[route]http.HandlerFunc
}

// NewHandler returns the handler for the projects of a directory.
func NewHandler(directory *Directory, claims *Claims) (*Handler, error) {
	scheme := runtime.NewScheme()
	if err := projectsv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	h := &Handler{
		infos:  &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
		codecs: serializer.NewCodecFactory(scheme),
	}
	store := storage{directory: directory}
	projects, err := h.scopeOf(scheme, projectsv1alpha1.Resource, kind, store)
	if err != nil {
		return nil, err
	}
	ofRequests, err := h.scopeOf(scheme, projectsv1alpha1.RequestsResource, requestKind, rest.NewDefaultTableConvertor(requestsResource))
	if err != nil {
		return nil, err
	}
	list := handlers.ListResource(store, store, projects, false, minWatch)
	h.routes = map[route]http.HandlerFunc{
		{projectsv1alpha1.Resource, "get"}:   handlers.GetResource(store, projects),
		{projectsv1alpha1.Resource, "list"}:  list,
		{projectsv1alpha1.Resource, "watch"}: list,
		// These two handlers write to a variable that all requests to one share: each
		// request gets its own.
		{projectsv1alpha1.Resource, "delete"}: func(w http.ResponseWriter, r *http.Request) {
			handlers.DeleteResource(deleter{directory, claims}, true, projects, nil)(w, r)
		},
		{projectsv1alpha1.RequestsResource, "create"}: func(w http.ResponseWriter, r *http.Request) {
			handlers.CreateResource(requests{directory, claims}, ofRequests, nil)(w, r)
		},
	}
	h.discovery = discoveryOf(h.codecs)
	return h, addOpenAPI(h.discovery)
}

// scopeOf returns what the handlers of an apiserver need to know of a resource.
func (h *Handler) scopeOf(scheme *runtime.Scheme, name, kind string, tables rest.TableConvertor) (*handlers.RequestScope, error) {
	gvk := projectsv1alpha1.GroupVersion.WithKind(kind)
	convertor := runtime.UnsafeObjectConvertor(scheme)
	fieldManager, err := managedfields.NewDefaultFieldManager(
		managedfields.NewDeducedTypeConverter(), convertor, scheme, scheme, gvk, projectsv1alpha1.GroupVersion, "", nil)
	if err != nil {
		return nil, err
	}
	return &handlers.RequestScope{
		Namer:               handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: true},
		Serializer:          h.codecs,
		StandardSerializers: withoutProtobuf(h.codecs.SupportedMediaTypes()),
		ParameterCodec:      runtime.NewParameterCodec(scheme),
		Creater:             scheme, //nolint:misspell // the field of the library
		Convertor:           scheme,
		Defaulter:           scheme,
		Typer:               scheme,
		UnsafeConvertor:     convertor,
		TableConvertor:      tables,
		FieldManager:        fieldManager,
		Resource:            projectsv1alpha1.GroupVersion.WithResource(name),
		Kind:                gvk,
		HubGroupVersion:     projectsv1alpha1.GroupVersion,
		MetaGroupVersion:    metav1.SchemeGroupVersion,
		MaxRequestBodyBytes: maxBody,
	}, nil
}

// withoutProtobuf returns the formats for types that are not generated for
// protobuf.
func withoutProtobuf(all []runtime.SerializerInfo) []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(all), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}

// discoveryOf serves what clients ask to find the resources. There is no
// aggregated form: clients fall back.
func discoveryOf(codecs serializer.CodecFactory) *http.ServeMux {
	version := metav1.GroupVersionForDiscovery{
		GroupVersion: projectsv1alpha1.GroupVersion.String(), Version: projectsv1alpha1.GroupVersion.Version,
	}
	group := metav1.APIGroup{
		Name: projectsv1alpha1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	groups := discovery.NewRootAPIsHandler(discovery.DefaultAddresses{}, codecs)
	groups.AddGroup(group)
	resources := discovery.APIResourceListerFunc(func() []metav1.APIResource {
		return []metav1.APIResource{{
			Name: projectsv1alpha1.Resource, SingularName: "project", Kind: kind, Verbs: metav1.Verbs{"delete", "get", "list", "watch"},
		}, {
			Name: projectsv1alpha1.RequestsResource, SingularName: "projectrequest", Kind: requestKind, Verbs: metav1.Verbs{"create"},
		}}
	})
	mux := http.NewServeMux()
	mux.Handle("GET /apis", groups)
	mux.Handle("GET /apis/"+group.Name, discovery.NewAPIGroupHandler(codecs, group))
	mux.Handle("GET /apis/"+version.GroupVersion, discovery.NewAPIVersionHandler(codecs, projectsv1alpha1.GroupVersion, resources))
	return mux
}

// Serve serves a request of a user of the super cluster.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, who user.Info) {
	info, err := h.infos.NewRequestInfo(r)
	if err == nil && httpstream.IsUpgradeRequest(r) {
		err = errors.New("projects are not watched by a WebSocket")
	}
	if err != nil {
		h.fail(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	ctx := request.WithReceivedTimestamp(request.WithUser(request.WithRequestInfo(r.Context(), info), who), time.Now())
	r = r.WithContext(ctx)
	asked := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	ours := asked.GroupVersion() == projectsv1alpha1.GroupVersion && info.Namespace == "" && info.Subresource == "" &&
		(asked.Resource == projectsv1alpha1.Resource || asked.Resource == projectsv1alpha1.RequestsResource)
	serve := h.routes[route{info.Resource, info.Verb}]
	switch {
	case ours && serve != nil:
		serve(w, r)
	case ours:
		h.fail(w, r, apierrors.NewMethodNotSupported(asked.GroupResource(), info.Verb))
	default:
		h.serveDiscovery(w, r)
	}
}

// serveDiscovery serves all that is not about projects themselves.
func (h *Handler) serveDiscovery(w http.ResponseWriter, r *http.Request) {
	if next, pattern := h.discovery.Handler(r); pattern != "" {
		next.ServeHTTP(w, r)
		return
	}
	h.fail(w, r, apierrors.NewGenericServerResponse(
		http.StatusNotFound, r.Method, schema.GroupResource{}, "", "the gateway serves no such resource: it serves projects", 0, true))
}

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, h.codecs, schema.GroupVersion{}, w, r)
}
