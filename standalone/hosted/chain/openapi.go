package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	openAPIV2 = "/openapi/v2"
	openAPIV3 = "/openapi/v3"
	// documentsExpire is the time after which documents without requests
	// are dropped: that of version 2 contains all built-in APIs.
	documentsExpire = time.Minute
)

// documents are the OpenAPI documents of a tenant that has added APIs.
type documents struct {
	state state
	// expire is when documents of aggregated APIs are read again.
	expire time.Time
	// v2 serves the merged document, and v3 serves those of single versions that
	// are not built in. Each is computed on first use.
	v2 func() http.Handler
	v3 func() *versionDocuments
}

// versionDocuments are OpenAPI documents of version 3.
type versionDocuments struct {
	service *handler3.OpenAPIService
	paths   map[string]bool // such as apis/example.com/v1
	// remote are the paths of aggregated APIs.
	remote map[string]handler3.OpenAPIV3DiscoveryGroupVersion
}

// documentCache keeps documents while they are in use.
type documentCache struct {
	mu      sync.Mutex // guards all below
	current *documents
	expiry  *time.Timer
}

// get returns the documents of a state.
func (d *documentCache) get(now state, create func() (*documents, error)) (*documents, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil || d.current.state != now || now.remote != "" && time.Now().After(d.current.expire) {
		created, err := create()
		if err != nil {
			return nil, err
		}
		d.current = created
	}
	if d.expiry == nil {
		d.expiry = time.AfterFunc(documentsExpire, d.drop)
	}
	d.expiry.Reset(documentsExpire)
	return d.current, nil
}

func (d *documentCache) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current = nil
}

// documentsOf returns the OpenAPI documents of a tenant.
func (c *Chain) documentsOf(ctx context.Context, from added) (*documents, error) {
	now, _, err := c.stateOf(ctx, from)
	if err != nil {
		return nil, err
	}
	return from.tenant.documents.get(now, func() (*documents, error) {
		objects, err := from.definitions()
		if err != nil {
			return nil, err
		}
		return &documents{
			state: now, expire: time.Now().Add(documentsExpire),
			v2: sync.OnceValue(func() http.Handler { return mergedDocument(c.builtIn.openAPI.document, objects, from.remote) }),
			v3: sync.OnceValue(func() *versionDocuments {
				found := documentsOfVersions(objects)
				found.remote = from.remote.documents()
				return found
			}),
		}, nil
	})
}

// eachVersion calls a function for each version of a definition that is served.
func eachVersion(objects []*apiextensionsv1.CustomResourceDefinition, visit func(*apiextensionsv1.CustomResourceDefinition, string)) {
	for _, object := range objects {
		if !apihelpers.IsCRDConditionTrue(object, apiextensionsv1.Established) {
			continue
		}
		for _, v := range object.Spec.Versions {
			if v.Served {
				visit(object, v.Name)
			}
		}
	}
}

// mergedDocument serves a document of version 2. As in upstream, definitions
// that cannot be described are left out.
func mergedDocument(builtIn *spec.Swagger, objects []*apiextensionsv1.CustomResourceDefinition, remote *apiAggregator) http.Handler {
	service := handler.NewOpenAPIServiceLazy(cached.Once(cached.Func(func() (*spec.Swagger, string, error) {
		var custom []*spec.Swagger
		eachVersion(objects, func(object *apiextensionsv1.CustomResourceDefinition, version string) {
			document, err := builder.BuildOpenAPIV2(object, version, builder.Options{V2: true, IncludeSelectableFields: true})
			if err == nil {
				document.Definitions = handler.PruneDefaults(document.Definitions)
				custom = append(custom, document)
			}
		})
		merged, err := builder.MergeSpecs(builtIn, custom...)
		if err == nil {
			remote.mergeDocuments(merged)
		}
		return merged, "", err
	})))
	mux := http.NewServeMux()
	service.RegisterOpenAPIVersionedService(openAPIV2, mux)
	return mux
}

// builtInOpenAPI are the documents of the built-in APIs. Tenants share them.
type builtInOpenAPI struct {
	models   *common.OpenAPIV3Config // of the types of objects
	document *spec.Swagger           // of version 2
	// served serves the documents, and discovery returns where those of version 3
	// are.
	served    http.Handler
	discovery func() (handler3.OpenAPIV3Discovery, error)
}

// newBuiltInOpenAPI describes the APIs that have been installed in a container.
// It repeats what PrepareRun of upstream's server does, and keeps nothing of
// the server.
func newBuiltInOpenAPI(config *genericapiserver.Config, installed *restful.Container) builtInOpenAPI {
	served := mux.NewPathRecorderMux("openapi")
	of := routes.OpenAPI{Config: config.OpenAPIConfig, V3Config: config.OpenAPIV3Config}
	_, document := of.InstallV2(installed, served)
	of.InstallV3(installed, served)
	return builtInOpenAPI{
		models: config.OpenAPIV3Config, document: document, served: served,
		discovery: sync.OnceValues(func() (handler3.OpenAPIV3Discovery, error) {
			var found handler3.OpenAPIV3Discovery
			_, err := readDocument(context.Background(), served, openAPIV3, "application/json", &found)
			return found, err
		}),
	}
}

// shareModels prevents each server from having documents and models of its own.
// They take 35 MB, and are the same for all chains of a process.
func (c *Chain) shareModels() {
	generic := c.config.KubeAPIs.ControlPlane.Generic
	generic.SkipOpenAPIInstallation = true // newBuiltInOpenAPI does it
	extensions, aggregator := &c.config.ApiExtensions.GenericConfig.Config, &c.config.Aggregator.GenericConfig.Config
	for _, unused := range []*genericapiserver.Config{extensions, aggregator} {
		unused.OpenAPIConfig, unused.OpenAPIV3Config = nil, nil
	}
	if c.opts.Like != nil {
		models := *c.opts.Like.builtIn.openAPI.models // upstream completes it again
		generic.OpenAPIConfig, generic.OpenAPIV3Config = nil, &models
	}
}

// documentsOfVersions returns the documents of version 3 of custom resources.
func documentsOfVersions(objects []*apiextensionsv1.CustomResourceDefinition) *versionDocuments {
	byPath := map[string][]*spec3.OpenAPI{}
	eachVersion(objects, func(object *apiextensionsv1.CustomResourceDefinition, version string) {
		document, err := builder.BuildOpenAPIV3(object, version, builder.Options{IncludeSelectableFields: true})
		if err == nil {
			path := "apis/" + object.Spec.Group + "/" + version
			byPath[path] = append(byPath[path], document)
		}
	})
	found := &versionDocuments{service: handler3.NewOpenAPIService(), paths: map[string]bool{}}
	for path, each := range byPath {
		if merged, err := builder.MergeSpecsV3(each...); err == nil {
			found.service.UpdateGroupVersion(path, merged)
			found.paths[path] = true
		}
	}
	return found
}

// serveOpenAPI serves OpenAPI documents.
func (c *Chain) serveOpenAPI(from added, w http.ResponseWriter, r *http.Request) {
	found, err := c.documentsOf(r.Context(), from)
	path := strings.TrimSuffix(r.URL.Path, "/")
	version, isVersion := strings.CutPrefix(path, openAPIV3+"/")
	switch {
	case err != nil:
		unavailable(w, r, err)
	case path == openAPIV2:
		found.v2().ServeHTTP(w, r)
	case path == openAPIV3:
		c.serveDocumentList(found, w, r)
	case isVersion && c.isAdded(version):
		serveVersionDocument(found.v3(), from, version, w, r)
	default:
		c.builtIn.openAPI.served.ServeHTTP(w, r)
	}
}

// isAdded reports whether a path, such as apis/example.com/v1, is not that of
// built-in APIs.
func (c *Chain) isAdded(path string) bool {
	parts := splitPath(path)
	return len(parts) == 3 && !c.builtIn.discovery.has(parts[1], parts[2])
}

// serveVersionDocument serves a document of version 3 that is not built in.
func serveVersionDocument(found *versionDocuments, from added, path string, w http.ResponseWriter, r *http.Request) {
	parts := splitPath(path)
	remote := from.remoteAPI(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	switch {
	case remote != nil:
		remote.ServeHTTP(w, r.WithContext(apirequest.WithUser(r.Context(), aggregatorUser())))
	case found.paths[path]:
		found.service.HandleGroupVersion(w, r)
	default:
		http.NotFound(w, r)
	}
}

// serveDocumentList serves where the documents of version 3 are.
func (c *Chain) serveDocumentList(found *documents, w http.ResponseWriter, r *http.Request) {
	var custom handler3.OpenAPIV3Discovery
	_, err := readDocument(r.Context(), http.HandlerFunc(found.v3().service.HandleDiscovery), openAPIV3, "application/json", &custom)
	if err != nil {
		unavailable(w, r, err)
		return
	}
	builtIn, err := c.builtIn.openAPI.discovery()
	if err != nil {
		unavailable(w, r, err)
		return
	}
	maps.Copy(custom.Paths, found.v3().remote)
	maps.Copy(custom.Paths, builtIn.Paths)
	content, err := json.Marshal(custom)
	if err != nil {
		unavailable(w, r, err)
		return
	}
	sum := sha256.Sum256(content)
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	w.Header().Set("Content-Type", "application/json")
	http.ServeContent(w, r, openAPIV3, time.Time{}, strings.NewReader(string(content)))
}
