package convert

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// call is one request for a kind that is served.
type call struct {
	*Handler

	info *request.RequestInfo
	kind kinds.Kind
	// name is that in the path, and storedName the same in the super cluster; empty
	// if it has none.
	name, storedName string
	namer            naming.Namer
	// namespace is that of the path in the super cluster, also if the request is
	// for the Namespace itself; empty if it has none.
	namespace string
	// exists: the namespace exists, and is the tenant's. terminating: it is being
	// deleted.
	exists, terminating bool
	// applies: the request is a server-side apply.
	applies bool
	// given is the name in the document of the request, and givenStored the same in
	// the super cluster; empty if there is none.
	given, givenStored string
}

// The verbs of requests.
const (
	verbCreate           = "create"
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
	verbGet              = "get"
	verbList             = "list"
	verbPatch            = "patch"
	verbUpdate           = "update"
	verbWatch            = "watch"
)

var (
	methods  = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	versions = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
)

// newCall finds out what a request is for, and refuses what is not served.
func (h *Handler) newCall(r *http.Request, info *request.RequestInfo) (*call, error) {
	kind, err := h.kindOf(r.Context(), info)
	if err != nil {
		return nil, err
	}
	c := &call{Handler: h, info: info, kind: kind}
	if len(info.Parts) > 1 {
		c.name = info.Parts[1]
	}
	mediaType, _ := mediaTypeOf(r)
	c.applies = info.Verb == verbPatch && mediaType == string(types.ApplyYAMLPatchType)
	c.namer = naming.Namer{Key: h.Tenant, Namespaces: h.Namespaces}
	if err := c.refusal(r); err != nil {
		return nil, err
	}
	if c.storedName, err = c.storedAs(c.name); err != nil {
		return nil, badRequest(err)
	}
	return c, c.place(r.Context())
}

// storedAs returns the name in the super cluster of an object of the kind.
func (c *call) storedAs(name string) (string, error) {
	switch {
	case name == "":
		return "", nil
	case c.kind.IsNamespace():
		return c.namer.Namespace(name)
	case c.kind.IsCRD():
		return c.namer.CRD(name)
	case c.kind.IsStored():
		return naming.Shelved(name)
	}
	return name, nil
}

// refusal returns why a request is not served; nil if it is.
func (c *call) refusal(r *http.Request) error {
	subresource, known := c.kind.Subresources[c.info.Subresource]
	resource := c.kind.GroupResource()
	switch {
	case !c.kind.Served():
		return apierrors.NewForbidden(resource, c.name, errors.New(c.kind.Reason))
	case c.info.Subresource != "" && !known:
		return apierrors.NewNotFound(resource, c.name+"/"+c.info.Subresource)
	case c.info.Subresource != "" && subresource.Form == "":
		return apierrors.NewForbidden(resource, c.name+"/"+c.info.Subresource, errors.New(subresource.Reason))
	case c.isPlatforms(c.name):
		return apierrors.NewForbidden(resource, c.name, errPlatforms)
	case !c.isVersion():
		return apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, resource, c.name, "", 0, false)
	case !slices.Contains(methods, r.Method) && subresource.Form != kinds.Proxy:
		return apierrors.NewMethodNotSupported(resource, r.Method)
	case c.kind.Uncreated != "" && !c.RunsDaemonSets && (c.info.Verb == verbCreate || c.applies):
		return apierrors.NewForbidden(resource, c.name, errors.New(c.kind.Uncreated))
	case c.kind.Class == kinds.Shown && !slices.Contains(c.kind.Verbs, c.info.Verb):
		return apierrors.NewForbidden(resource, c.name, errors.New(c.kind.ReadOnly))
	case c.applies && c.kind.Stored.Whole:
		return apierrors.NewForbidden(resource, c.name, errNoApply)
	case c.kind.Namespaced() && c.info.Namespace == "" && !c.isMany(), c.kind.IsNamespace() && !c.isOfNamespaces():
		return apierrors.NewMethodNotSupported(resource, c.info.Verb)
	case c.kind.IsCustom() && c.kind.Namespaced() != (c.info.Namespace != "") && !c.isMany():
		return errNoResource
	case !c.isPath(r.URL.Path):
		return apierrors.NewBadRequest("the path is not that of a resource")
	}
	return nil
}

// isVersion reports whether the gateway may serve the version: it knows but one
// of the kinds that the super cluster does not serve for it.
func (c *call) isVersion() bool {
	switch c.kind.Class {
	case kinds.Answered, kinds.Shelved:
		return c.info.APIVersion == "v1"
	case kinds.Placed, kinds.Prefixed, kinds.Shown, kinds.Refused:
	}
	return true
}

// isOfNamespaces reports whether a request is one of those for Namespaces.
func (c *call) isOfNamespaces() bool {
	return c.info.Namespace != "" || c.isMany() || c.createsNamespace()
}

// createsNamespace reports whether the request is a create of a Namespace.
func (c *call) createsNamespace() bool { return c.kind.IsNamespace() && c.info.Verb == verbCreate }

// isPath reports whether a path is that of the resource, and of nothing that
// another reader could understand differently.
func (c *call) isPath(asked string) bool {
	switch {
	case !versions.MatchString(c.info.APIVersion), len(content.IsPathSegmentName(c.name)) > 0:
		return false
	case c.kind.IsNamespace() && c.name != c.info.Namespace:
		return false
	case !c.kind.Namespaced() && !c.kind.IsNamespace() && c.info.Namespace != "":
		return false
	}
	own := c.pathOf(c.version(), c.info.Namespace, c.name, c.info.Subresource)
	if c.isProxy() {
		return isBelow(asked, own)
	}
	return own == asked
}

// isPlatforms reports whether an object of that name is the platform's.
func (c *call) isPlatforms(name string) bool { return c.kind.Reserves && names.PlatformPolicy(name) }

// isMany reports whether a request is for all objects that selectors select.
func (c *call) isMany() bool { return c.info.Verb == verbList || c.info.Verb == verbWatch }

// place finds the namespace in the super cluster. Objects in one that does not
// exist are not found, except that lists of them are empty.
func (c *call) place(ctx context.Context) error {
	tenant := c.info.Namespace
	if c.kind.Stored.InRoot {
		c.namespace, c.exists = c.Tenant, true
		return nil
	}
	if tenant == "" {
		return nil
	}
	super, err := c.namer.Namespace(tenant)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	c.namespace = super
	if c.exists, err = c.find(ctx, super, tenant); err != nil || c.exists {
		return err
	}
	switch {
	case c.isMany(), c.kind.IsNamespace() && c.applies && c.info.Subresource == "":
		return nil
	case c.kind.IsNamespace(), c.name == "", c.applies:
		return apierrors.NewNotFound(namespacesResource, tenant)
	}
	return apierrors.NewNotFound(c.kind.GroupResource(), c.name)
}

// isFenced reports whether the request is sent as the tenant's service account,
// which is permitted nothing outside of the tenant's namespaces. When one of
// these is deleted, its RoleBinding is gone before the Namespace: until the end,
// the tenant reads the Namespace, and lists what is left.
func (c *call) isFenced() bool {
	switch {
	case c.kind.IsNamespace() && c.info.Verb == verbGet, c.isMany() && c.terminating:
		return false
	}
	return c.exists || c.kind.IsCustom()
}

// isAcross reports whether the request is for objects of several namespaces, or
// without one, which the super cluster selects by the tenant's label. Objects of
// the platform have none.
func (c *call) isAcross() bool {
	return (c.isMany() || c.info.Verb == verbDeleteCollection) && !c.isFenced() && c.kind.Class != kinds.Shown
}

// makesNamespace reports whether the request makes a Namespace, by create or by
// apply.
func (c *call) makesNamespace() bool {
	return c.kind.IsNamespace() && c.info.Subresource == "" && !c.exists && (c.createsNamespace() || c.applies)
}

// pathOf returns the path of the request for a type, a namespace and a name with a
// subresource.
func (c *call) pathOf(version schema.GroupVersion, namespace, name, subresource string) string {
	parts := []string{"", "apis", version.Group, version.Version}
	if version.Group == "" {
		parts = []string{"", "api", version.Version}
	}
	if namespace != "" && !c.kind.IsNamespace() {
		parts = append(parts, "namespaces", namespace)
	}
	parts = append(parts, c.info.Resource)
	for _, part := range []string{name, subresource} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// target returns the URL in the super cluster.
func (c *call) target(query url.Values) *url.URL {
	namespace := c.namespace
	if c.isAcross() {
		namespace = "" // the field selector names it
	}
	subresource := c.info.Subresource
	if c.kind.Stored.Whole {
		subresource = ""
	}
	target := c.urlOf(c.pathOf(c.storedType(), namespace, c.storedName, subresource))
	target.RawQuery = query.Encode()
	return target
}

// storedType returns the group and version in the super cluster.
func (c *call) storedType() schema.GroupVersion {
	stored := c.kind.StoredAs(c.info.APIVersion)
	if c.kind.IsCustom() {
		stored.Group = c.namer.Group(stored.Group)
	}
	return stored
}

// urlOf returns the URL of a path in the super cluster.
func (h *Handler) urlOf(path string) *url.URL {
	target := *h.SuperURL
	target.Path = strings.TrimSuffix(target.Path, "/") + path
	return &target
}

// transport returns what sends the request.
func (c *call) transport() http.RoundTripper {
	if c.isFenced() {
		return c.Fenced
	}
	return c.Super
}
