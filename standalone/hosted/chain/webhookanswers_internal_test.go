package chain

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// askWebhook asks a server with a client of webhooks, which upstream has changed
// once more.
func askWebhook(t *testing.T, request string, answer http.HandlerFunc) (status int, text string, err error) {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	given := &rest.Config{Host: server.URL}
	clients := boundAnswers(func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(string) (*rest.Config, error) { return given, nil },
		}
	})
	config, err := clients(nil).ClientConfigFor("example.com:443")
	if err != nil || given.WrapTransport != nil {
		t.Fatalf("the configuration of others is changed: %v", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post(config.Host, "application/json", strings.NewReader(request))
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.ContentLength != int64(len(body)) {
		t.Errorf("the length is %d of %d", response.ContentLength, len(body))
	}
	return response.StatusCode, string(body), err
}

func TestAnswersOfWebhooks(t *testing.T) {
	const large = leastAnswer + 1000
	padded := func(length int) string { return `{"a":"` + strings.Repeat("x", length-8) + `"}` }
	deep := strings.Repeat(`{"a":`, 200) + "0" + strings.Repeat("}", 200)
	for name, tc := range map[string]struct {
		request, answer string
		status          int
		want, reason    string
	}{
		"JSON":                          {"", `{"kind":"AdmissionReview"}`, http.StatusOK, `{"kind":"AdmissionReview"}`, ""},
		"nothing":                       {"", "", http.StatusOK, "", ""},
		"an error":                      {"", `{"kind":"Status"}`, http.StatusForbidden, `{"kind":"Status"}`, ""},
		"an error in text":              {"", "no such path", http.StatusNotFound, "no such path", ""},
		"a long text":                   {"", strings.Repeat("<p>", longestText), http.StatusOK, strings.Repeat("<p>", longestText)[:longestText], ""},
		"the longest":                   {"", padded(leastAnswer), http.StatusOK, padded(leastAnswer), ""},
		"longer":                        {"", padded(leastAnswer + 1), http.StatusOK, "", "the webhook answers with more than 3145728 bytes"},
		"long for a long request":       {padded(500), padded(large), http.StatusOK, padded(large), ""},
		"longer than for that":          {padded(500), padded(large + 1), http.StatusOK, "", "the webhook answers with more than 3146728 bytes"},
		"an error that is longer":       {"", padded(leastAnswer + 1), http.StatusInternalServerError, "", "the webhook answers with more than"},
		"protobuf":                      {"", nesting.ProtobufPrefix + "x", http.StatusOK, "", "the webhook answers in protobuf"},
		"an error in protobuf":          {"", nesting.ProtobufPrefix + "x", http.StatusConflict, "", "the webhook answers in protobuf"},
		"deep":                          {"", deep, http.StatusOK, "", "nested deeper than 128 levels"},
		"JSON behind space":             {"", "\n " + `{"kind":""}`, http.StatusOK, "\n " + `{"kind":""}`, ""},
		"JSON behind more than is read": {"", strings.Repeat(" ", longestText) + `{"kind":""}`, http.StatusOK, strings.Repeat(" ", longestText), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, text, err := askWebhook(t, tc.request, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			})
			if tc.reason != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.reason)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(tc.status))
			if text != tc.want { // of megabytes
				t.Errorf("got %d bytes, want %d", len(text), len(tc.want))
			}
		})
	}
}

// TestAnswersThatBreak are errors, as they are without a bound.
func TestAnswersThatBreak(t *testing.T) {
	g := NewWithT(t)
	_, _, err := askWebhook(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	})
	g.Expect(errors.Is(err, io.ErrUnexpectedEOF)).To(BeTrue(), "%v", err)
	_, err = withBoundAnswers(nil, io.ErrClosedPipe)
	g.Expect(err).To(MatchError(io.ErrClosedPipe))
}
