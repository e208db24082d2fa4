package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

const (
	// leastAnswer is how many bytes an answer of a webhook may have, beside twice
	// those of the request. A patch may be longer than the object, and is in base64.
	leastAnswer = 3 << 20
	// longestText is how much is read of an answer that is not in JSON: enough for
	// the message of an error.
	longestText = 1 << 10
)

// boundAnswers bounds what the clients of webhooks read. Upstream reads answers as a
// whole, and takes other formats than JSON, too.
func boundAnswers(clients webhook.AuthenticationInfoResolverWrapper) webhook.AuthenticationInfoResolverWrapper {
	return func(delegate webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		unbound := clients(delegate)
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
				return withBoundAnswers(unbound.ClientConfigFor(hostPort))
			},
			ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
				return withBoundAnswers(unbound.ClientConfigForService(name, namespace, port))
			},
		}
	}
}

// withBoundAnswers changes a copy: a configuration may be that of all requests to
// the apiserver itself.
func withBoundAnswers(config *rest.Config, err error) (*rest.Config, error) {
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedAnswers{next} })
	return config, nil
}

// boundedAnswers is a transport that reads the answers of webhooks.
type boundedAnswers struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	data, err := readAnswer(answer.Body, leastAnswer+2*max(0, r.ContentLength))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return answer, nil
}

// readAnswer returns an answer in JSON, or the beginning of one in text.
func readAnswer(body io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, longestText))
	if err != nil {
		return nil, err
	}
	if !utilyaml.IsJSONBuffer(data) {
		if bytes.HasPrefix(data, []byte(nesting.ProtobufPrefix)) {
			return nil, errors.New("the webhook answers in protobuf: only JSON is accepted")
		}
		return data, nil
	}
	rest, err := io.ReadAll(io.LimitReader(body, most+1-int64(len(data))))
	if err != nil {
		return nil, err
	}
	data = append(data, rest...)
	if int64(len(data)) > most {
		return nil, fmt.Errorf("the webhook answers with more than %d bytes", most)
	}
	return data, nesting.CheckText(data, runtime.ContentTypeJSON, false)
}
