package chain

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// TestBoundAnswers: clients of webhooks, with a URL and of a Service, refuse answers, and
// the configuration that they are made of is as before.
func TestBoundAnswers(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, nesting.ProtobufPrefix)
	}))
	defer server.Close()
	given := &rest.Config{Host: server.URL}
	clients := boundAnswers(func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc:        func(string) (*rest.Config, error) { return given, nil },
			ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) { return given, nil },
		}
	})(nil)
	for _, configure := range []func() (*rest.Config, error){
		func() (*rest.Config, error) { return clients.ClientConfigFor("example.com:443") },
		func() (*rest.Config, error) { return clients.ClientConfigForService("a", "b", 443) },
	} {
		config, err := configure()
		g.Expect(err).NotTo(HaveOccurred())
		client, err := rest.HTTPClientFor(config)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := client.Get(config.Host)
		if err == nil {
			err = response.Body.Close()
		}
		g.Expect(err).To(MatchError(ContainSubstring("answers in protobuf")))
	}
	g.Expect(given.WrapTransport).To(BeNil())
	_, err := withBoundAnswers(nil, io.ErrClosedPipe)
	g.Expect(err).To(MatchError(io.ErrClosedPipe))
}
