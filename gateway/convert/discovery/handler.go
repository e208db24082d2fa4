// Package discovery serves the discovery of converted tenants: that of the super
// cluster, with the kinds that such a tenant has.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	corePath   = "/api"
	groupsPath = "/apis"
)

const (
	// lifetime is how long the documents of the super cluster are used.
	lifetime = time.Minute
	// timeout is for reading them.
	timeout = 10 * time.Second
)

// accepted is the form in which the super cluster returns its documents.
const accepted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Handler serves discovery to all converted tenants. Each has a view of it.
type Handler struct {
	super     rest.Interface
	url       *url.URL
	transport http.RoundTripper
	now       func() time.Time

	mu      sync.Mutex
	current *snapshot
	read    time.Time

	swaggers swaggers
}

// New makes a handler for the super cluster that config leads to. It asks for its
// documents when they are first requested.
func New(config *rest.Config) (*Handler, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make the connections of discovery: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the super cluster: %w", err)
	}
	return &Handler{super: client.RESTClient(), url: server, transport: transport, now: time.Now}, nil
}

// documents returns the current ones. If the super cluster does not answer, these
// are the last ones.
func (h *Handler) documents(ctx context.Context) (*snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && h.now().Sub(h.read) < lifetime {
		return h.current, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout) // it is for all
	defer cancel()
	core, errOfCore := h.ask(ctx, corePath)
	others, errOfGroups := h.ask(ctx, groupsPath)
	if err := errors.Join(errOfCore, errOfGroups); err == nil {
		h.current = newSnapshot(groups{core: served(core), native: served(others)})
	} else if h.current == nil {
		return nil, err
	}
	h.read = h.now()
	return h.current, nil
}

// ask returns the groups in a document of the super cluster.
func (h *Handler) ask(ctx context.Context, path string) ([]apidiscoveryv2.APIGroupDiscovery, error) {
	list := &apidiscoveryv2.APIGroupDiscoveryList{}
	if err := h.super.Get().AbsPath(path).SetHeader("Accept", accepted).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("get %s of the super cluster: %w", path, err)
	}
	return list.Items, nil
}

func notFound(r *http.Request) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, schema.GroupResource{}, "", "", 0, false)
}

func reject(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, scheme.Codecs, schema.GroupVersion{}, w, r)
}
