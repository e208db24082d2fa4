package vnagent

import (
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// super is the way to the super cluster's apiserver.
type super struct {
	client rest.Interface
	// plain is for answers, many over one connection. Streams take a connection
	// each, which HTTP/2 has no way to give.
	plain, streams http.RoundTripper
}

func newSuper(config *rest.Config) (*super, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true // it would hold back the lines of a log
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the super cluster: %w", err)
	}
	s := &super{client: clients.CoreV1().RESTClient()}
	if s.plain, err = rest.TransportFor(config); err != nil {
		return nil, fmt.Errorf("make a transport to the super cluster: %w", err)
	}
	config.NextProtos = []string{"http/1.1"}
	if s.streams, err = rest.TransportFor(config); err != nil {
		return nil, fmt.Errorf("make a transport of streams to the super cluster: %w", err)
	}
	return s, nil
}

// location is where the super cluster offers what is ordered.
func (s *super) location(o order) *url.URL {
	location := s.client.Get().
		Namespace(o.pod.Namespace).Resource("pods").Name(o.pod.Name).SubResource(o.target.call.subresource()).URL()
	location.RawQuery = o.query.Encode()
	return location
}
