package discovery

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// View serves discovery to one tenant: the kinds of all tenants, and those of its
// CRDs.
type View struct {
	*Handler

	key  string
	crds *resources.Index

	mu sync.Mutex
	// own are the documents with the tenant's CRDs of a generation, made from those
	// of all tenants.
	own, all   *snapshot
	generation int
}

// For returns what serves a tenant.
func (h *Handler) For(clusterKey string, crds *resources.Index) *View {
	return &View{Handler: h, key: clusterKey, crds: crds}
}

// ServeHTTP implements http.Handler.
func (v *View) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		reject(w, r, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "discovery"}, r.Method))
		return
	}
	if isHealth(r.URL.Path) {
		v.forward(w, r, r.URL.Path, nil)
		return
	}
	documents, err := v.documents(r.Context())
	if err != nil {
		reject(w, r, apierrors.NewServiceUnavailable("the discovery of the super cluster is not available"))
		return
	}
	path := "/" + strings.Trim(r.URL.Path, "/")
	if path == openAPIPath {
		v.serveIndex(w, r, documents)
		return
	}
	if path == swaggerPath {
		v.serveSwagger(w, r, documents.groups.prefix)
		return
	}
	if version, isSchema := strings.CutPrefix(path, openAPIPath+"/"); isSchema && documents.schemas[version] != "" {
		v.serveSchemas(w, r, documents.schemas[version], documents.groups.prefix)
		return
	}
	document, ok := documents.byPath[path]
	if !ok {
		reject(w, r, notFound(r))
		return
	}
	document.ServeHTTP(w, r)
}

// Versions returns the versions of the API groups that the tenant has.
func (v *View) Versions(ctx context.Context) ([]schema.GroupVersion, error) {
	documents, err := v.documents(ctx)
	if err != nil {
		return nil, err
	}
	var versions []schema.GroupVersion
	for _, group := range slices.Concat(documents.groups.core, documents.groups.native, documents.groups.custom) {
		for _, version := range group.Versions {
			versions = append(versions, schema.GroupVersion{Group: group.Name, Version: version.Version})
		}
	}
	return versions, nil
}

// documents returns the current ones of the tenant.
func (v *View) documents(ctx context.Context) (*snapshot, error) {
	all, err := v.Handler.documents(ctx)
	if err != nil {
		return nil, err
	}
	crds, generation := v.crds.All(v.key)
	if len(crds) == 0 {
		return all, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil || v.all != all || v.generation != generation {
		own := all.groups
		own.custom, own.prefix = custom(crds), names.ConvertedGroup(v.key)
		v.own, v.all, v.generation = newSnapshot(own), all, generation
	}
	return v.own, nil
}
