package convert

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/tables"
)

// serveAPIServices answers a read of the APIServices: there is a local one for each
// version of an API group that the tenant has.
func (c *call) serveAPIServices(w http.ResponseWriter, r *http.Request) error {
	services, err := c.apiServices(r.Context())
	if err != nil {
		return err
	}
	form := formOf(r.Header)
	var found document.Object
	if c.info.Verb == verbList {
		found, err = c.apiServiceList(r, form, services)
	} else {
		found, err = c.apiService(form, services)
	}
	if err != nil {
		return err
	}
	if form.as == asTable {
		options := tables.Options{
			Kind: c.kind.Kind, Version: form.version, Include: metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject")),
		}
		if err := tables.Print(found, options); err != nil {
			return err
		}
	}
	return writeDocument(w, r, http.StatusOK, found)
}

// apiService returns the one that the request names.
func (c *call) apiService(form form, services []document.Object) (document.Object, error) {
	for _, service := range services {
		if nameOf(service) == c.name {
			return form.of(service), nil
		}
	}
	return nil, apierrors.NewNotFound(c.kind.GroupResource(), c.name)
}

// apiServiceList returns those that the request selects.
func (c *call) apiServiceList(r *http.Request, form form, services []document.Object) (document.Object, error) {
	query := r.URL.Query()
	labelled, err := labels.Parse(query.Get(labelSelector))
	if err != nil {
		return nil, badRequest(err)
	}
	selected, err := fields.ParseSelector(query.Get(fieldSelector))
	if err != nil {
		return nil, badRequest(err)
	}
	items := []any{}
	for _, service := range services {
		if labelled.Matches(labels.Set(automanaged)) && selected.Matches(fields.Set{metav1.ObjectNameField: nameOf(service)}) {
			items = append(items, form.of(service))
		}
	}
	list := &unstructured.UnstructuredList{Object: document.Object{"items": items}}
	list.SetAPIVersion(c.version().String())
	list.SetKind(c.kind.Kind + "List")
	if form.as == asMetadata {
		list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(asMetadata + "List"))
	}
	return list.Object, nil
}

// automanaged are the labels of the APIServices that an apiserver has by itself.
var automanaged = map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"}

func (c *call) apiServices(ctx context.Context) ([]document.Object, error) {
	versions, err := c.Discovery.Versions(ctx)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("the discovery of the super cluster is not available")
	}
	services := make([]document.Object, 0, len(versions))
	for _, version := range versions {
		services = append(services, c.apiServiceOf(version))
	}
	return services, nil
}

// apiServiceOf returns the APIService of a version. The priorities are those that
// API groups of CRDs have in a cluster.
func (c *call) apiServiceOf(version schema.GroupVersion) document.Object {
	spec := document.Object{"version": version.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(100)}
	if version.Group != "" {
		spec["group"] = version.Group
	}
	service := &unstructured.Unstructured{Object: document.Object{
		"spec": spec,
		"status": document.Object{"conditions": []any{document.Object{
			"type": "Available", "status": "True", "reason": "Local", "message": "Local APIServices are always available",
		}}},
	}}
	service.SetAPIVersion(c.version().String())
	service.SetKind(c.kind.Kind)
	service.SetName(version.Version + "." + version.Group)
	service.SetLabels(automanaged)
	return service.Object
}

// version is the group and version of the request.
func (c *call) version() schema.GroupVersion {
	return schema.GroupVersion{Group: c.info.APIGroup, Version: c.info.APIVersion}
}
