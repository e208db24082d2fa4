package discovered

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	// timeout is the time limit of a request, as in client-go.
	timeout = 32 * time.Second
	// aggregated is the only form that is requested. All apiservers of this
	// process serve it.
	aggregated = discovery.AcceptV2
)

// paths returns the paths of the documents.
func paths() []string { return []string{"/api", "/apis"} }

// Client is the discovery client of the controllers of one control plane. It
// discovers at each call, which is cheap while nothing has changed.
type Client struct {
	discovery.DiscoveryInterface

	shared *Shared
	http   *http.Client
	base   *url.URL

	mu sync.Mutex
	// last was discovered last, when the documents had these tags.
	last *APIs
	tags []string
}

var _ discovery.AggregatedDiscoveryInterface = &Client{}

// NewClient returns a client of a control plane. It uses plain for all that is
// not discovery of resources.
func NewClient(config *rest.Config, plain discovery.DiscoveryInterface, shared *Shared) (*Client, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a discovery client: %w", err)
	}
	limited := rest.CopyConfig(config)
	limited.Timeout = timeout
	client, err := rest.HTTPClientFor(limited)
	if err != nil {
		return nil, fmt.Errorf("create a discovery client: %w", err)
	}
	return &Client{DiscoveryInterface: plain, shared: shared, http: client, base: base}, nil
}

// APIs returns the APIs that the control plane serves now.
func (c *Client) APIs() (*APIs, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	documents, tags, changed, err := c.read(c.tags)
	if err == nil && changed && c.tags != nil {
		documents, tags, _, err = c.read(nil) // those that have not changed, too
	}
	if err != nil {
		return nil, err
	}
	if !changed {
		return c.last, nil
	}
	found, err := c.shared.get(documents)
	if err != nil {
		return nil, err
	}
	c.last, c.tags = found, tags
	return found, nil
}

// read reads the documents that do not have these tags any more.
func (c *Client) read(known []string) (documents [][]byte, tags []string, changed bool, err error) {
	for n, path := range paths() {
		tag := ""
		if known != nil {
			tag = known[n]
		}
		document, now, err := c.readDocument(path, tag)
		if err != nil {
			return nil, nil, false, err
		}
		documents, tags, changed = append(documents, document), append(tags, now), changed || document != nil
	}
	return documents, tags, changed, nil
}

// readDocument reads a document and its tag; nil if it has this tag.
func (c *Client) readDocument(path, tag string) (document []byte, now string, err error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.base.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return nil, "", fmt.Errorf("discover %s: %w", path, err)
	}
	request.Header.Set("Accept", aggregated)
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, "", fmt.Errorf("discover %s: %w", path, err)
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	switch {
	case response.StatusCode == http.StatusNotModified && tag != "":
		return nil, tag, nil
	case response.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("discover %s: the apiserver answers %s", path, response.Status)
	}
	if document, err = io.ReadAll(response.Body); err != nil {
		return nil, "", fmt.Errorf("discover %s: %w", path, err)
	}
	return document, response.Header.Get("ETag"), nil
}

// GroupsAndMaybeResources implements discovery.AggregatedDiscoveryInterface.
func (c *Client) GroupsAndMaybeResources() (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	apis, err := c.APIs()
	if err != nil {
		return nil, nil, nil, err
	}
	return view{apis: apis}.GroupsAndMaybeResources()
}

// ServerGroupsAndResources implements discovery.DiscoveryInterface.
func (c *Client) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResources(c)
}

// ServerPreferredResources implements discovery.DiscoveryInterface.
func (c *Client) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredResources(c)
}

// ServerPreferredNamespacedResources implements discovery.DiscoveryInterface.
func (c *Client) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredNamespacedResources(c)
}
