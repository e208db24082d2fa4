package provider

import (
	"context"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
	"github.com/virtualcluster/virtualcluster/syncer/informer"
)

// changes reads the changes of a tenant from the host of its control plane, in
// one stream for all built-in kinds.
type changes struct {
	*Cluster

	held held
}

// source returns the stream of a tenant's changes. Only control planes that the
// platform runs have one.
func (c changes) source() *informer.Source {
	return &informer.Source{KindOf: c.kindOf, Open: c.open}
}

// kindOf returns the kind of an example, as a host serves it. Custom resources
// belong to a tenant, whose apiserver alone can convert them.
func (c changes) kindOf(example runtime.Object) (kind watchstream.Kind, ok bool) {
	gvk := c.held.kindOf(example)
	if !kubernetesscheme.Scheme.Recognizes(gvk) {
		return kind, false
	}
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return kind, false
	}
	_, kind.Metadata = example.(*metav1.PartialObjectMetadata)
	kind.Resource = mapping.Resource
	kind.Selector = c.held.selector(example)
	return kind, true
}

// open requests a stream. The connection is that of all other requests to the
// tenant, with the same limits, and the host takes the tenant from the
// connection: events of another tenant cannot arrive here.
func (c changes) open(ctx context.Context, kinds []watchstream.Kind) (io.ReadCloser, error) {
	address, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, fmt.Errorf("find the tenant's apiserver: %w", err)
	}
	address = address.JoinPath(watchstream.Path)
	address.RawQuery = watchstream.Query(kinds).Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("watch the tenant's changes: %w", err)
	}
	request.Header.Set("Accept", watchstream.ContentType)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("watch the tenant's changes: %w", err)
	}
	if response.StatusCode == http.StatusOK && response.Header.Get("Content-Type") == watchstream.ContentType {
		return response.Body, nil
	}
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable:
		return nil, informer.ErrNoStream
	}
	return nil, fmt.Errorf("watch the tenant's changes: the apiserver answers %s", response.Status)
}
