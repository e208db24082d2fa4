package app

import (
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// unanswered logs why the super cluster does not answer a request of a converted
// tenant, who is told no more than that.
type unanswered struct {
	http.RoundTripper

	log logr.Logger
}

// connectionsTo returns connections with the credentials of a configuration.
func connectionsTo(config *rest.Config, log logr.Logger) (http.RoundTripper, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make connections to the super cluster: %w", err)
	}
	return unanswered{transport, log}, nil
}

// RoundTrip implements http.RoundTripper.
func (u unanswered) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(r)
	if err != nil && r.Context().Err() == nil {
		u.log.Error(err, "The super cluster does not answer", "method", r.Method, "path", r.URL.Path)
	}
	return response, err
}
