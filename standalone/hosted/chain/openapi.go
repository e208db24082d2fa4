package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/labels"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	openAPIV2 = "/openapi/v2"
	openAPIV3 = "/openapi/v3"
	// documentsExpire is the time after which documents that nobody has requested
	// are dropped: that of version 2 contains all built-in APIs.
	documentsExpire = time.Minute
)

// documents are the OpenAPI documents of a tenant with custom resources.
type documents struct {
	changes int64
	// v2 serves the merged document, and v3 serves those of single versions of
	// groups that have only custom resources. Each is computed on first use.
	v2 func() http.Handler
	v3 func() *versionDocuments
}

// versionDocuments are OpenAPI documents of version 3.
type versionDocuments struct {
	service *handler3.OpenAPIService
	paths   map[string]bool // such as apis/example.com/v1
}

// documentCache keeps documents while they are in use.
type documentCache struct {
	mu      sync.Mutex // guards all below
	current *documents
	expiry  *time.Timer
}

// get returns the documents after a number of changes of definitions.
func (d *documentCache) get(changes int64, create func() (*documents, error)) (*documents, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.current == nil || d.current.changes != changes {
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
func (c *Chain) documentsOf(s *customResources) (*documents, error) {
	changes := s.changes.Load()
	return s.documents.get(changes, func() (*documents, error) {
		objects, err := s.definitions.Lister().List(labels.Everything())
		if err != nil {
			return nil, fmt.Errorf("list the %s: %w", definitions, err)
		}
		return &documents{
			changes: changes,
			v2:      sync.OnceValue(func() http.Handler { return mergedDocument(c.builtIn.openAPI.document, objects) }),
			v3:      sync.OnceValue(func() *versionDocuments { return c.builtIn.openAPI.documentsOfVersions(objects) }),
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
func mergedDocument(builtIn *spec.Swagger, objects []*apiextensionsv1.CustomResourceDefinition) http.Handler {
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
		return merged, "", err
	})))
	mux := http.NewServeMux()
	service.RegisterOpenAPIVersionedService(openAPIV2, mux)
	return mux
}

// builtInOpenAPI are the documents of the built-in APIs. Tenants share them.
type builtInOpenAPI struct {
	document *spec.Swagger // of version 2
	// discovery returns where the documents of version 3 are.
	discovery func() (handler3.OpenAPIV3Discovery, error)
}

func newBuiltInOpenAPI(ctx context.Context, apis http.Handler, server *genericapiserver.GenericAPIServer) builtInOpenAPI {
	return builtInOpenAPI{
		document: server.StaticOpenAPISpec,
		discovery: sync.OnceValues(func() (handler3.OpenAPIV3Discovery, error) {
			var found handler3.OpenAPIV3Discovery
			_, err := readDocument(ctx, apis, openAPIV3, "application/json", &found)
			return found, err
		}),
	}
}

// documentsOfVersions returns the documents of version 3.
func (b builtInOpenAPI) documentsOfVersions(objects []*apiextensionsv1.CustomResourceDefinition) *versionDocuments {
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
func (c *Chain) serveOpenAPI(s *customResources, w http.ResponseWriter, r *http.Request) {
	found, err := c.documentsOf(s)
	path := strings.TrimSuffix(r.URL.Path, "/")
	version, isVersion := strings.CutPrefix(path, openAPIV3+"/")
	switch {
	case err != nil:
		unavailable(w, r, err)
	case path == openAPIV2:
		found.v2().ServeHTTP(w, r)
	case path == openAPIV3:
		c.serveDocumentList(found, w, r)
	case isVersion && !c.isBuiltIn(version) && found.v3().paths[version]:
		found.v3().service.HandleGroupVersion(w, r)
	default:
		c.builtIn.apis.ServeHTTP(w, r)
	}
}

// isBuiltIn reports whether a document of version 3 is that of built-in APIs.
func (c *Chain) isBuiltIn(path string) bool {
	found, err := c.builtIn.openAPI.discovery()
	_, ok := found.Paths[path]
	return ok || err != nil
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
