package webhookanswers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

// ask sends a request to a server, and returns the answer and its text.
func ask(t *testing.T, request string, answer http.HandlerFunc) (*http.Response, string, error) {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	client := http.Client{Transport: Bound(http.DefaultTransport)}
	response, err := client.Post(server.URL, "application/json", strings.NewReader(request))
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.ContentLength != int64(len(body)) {
		t.Errorf("the length is %d of %d", response.ContentLength, len(body))
	}
	return response, string(body), err
}

func TestBound(t *testing.T) {
	const large = leastAnswer + 1000
	padded := func(length int) string { return `{"a":"` + strings.Repeat("x", length-8) + `"}` }
	codeOf := func(code int) string { return fmt.Sprintf(`{"response":{"status":{"code":%d}}}`, code) }
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
		"the highest status code":       {"", codeOf(599), http.StatusOK, codeOf(599), ""},
		"a higher status code":          {"", codeOf(600), http.StatusOK, "", "the webhook answers with the status code 600: it can be at most 599"},
		"JSON behind space":             {"", "\n " + `{"kind":""}`, http.StatusOK, "\n " + `{"kind":""}`, ""},
		"JSON behind more than is read": {"", strings.Repeat(" ", longestText) + `{"kind":""}`, http.StatusOK, strings.Repeat(" ", longestText), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response, text, err := ask(t, tc.request, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			})
			if tc.reason != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.reason)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.StatusCode).To(Equal(tc.status))
			g.Expect(response.Header).NotTo(HaveKey("Retry-After"))
			if text != tc.want { // of megabytes
				t.Errorf("got %d bytes, want %d", len(text), len(tc.want))
			}
		})
	}
}

// review returns a review of admission whose response has a patch.
func review(t *testing.T, apiVersion, patch string) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": apiVersion, "kind": "AdmissionReview",
		"response": map[string]any{"uid": "a", "allowed": true, "patchType": "JSONPatch", "patch": []byte(patch)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPatches: what a patch makes of an object is not deeper than a limit, also if the
// object was made deep by other patches.
func TestPatches(t *testing.T) {
	moves := func(times int) string {
		return "[" + strings.Repeat(`{"op":"move","from":"/a","path":"/b/c"},`, times) + `{"op":"remove","path":"/b"}]`
	}
	deep := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "0" + strings.Repeat("}", levels) }
	adds := func(levels int) string { return `[{"op":"add","path":"/a","value":` + deep(levels) + `}]` }
	const tooDeep = "nested deeper than 1000 levels after this patch"
	for name, tc := range map[string]struct {
		request, answer, reason string
	}{
		"moves":                                {deep(10), review(t, "admission.k8s.io/v1", moves(495)), ""},
		"more moves":                           {deep(10), review(t, "admission.k8s.io/v1", moves(496)), tooDeep},
		"moves in a review of the beta":        {deep(10), review(t, "admission.k8s.io/v1beta1", moves(496)), tooDeep},
		"moves in a deep object":               {deep(100), review(t, "admission.k8s.io/v1", moves(495)), tooDeep},
		"a value":                              {deep(10), review(t, "admission.k8s.io/v1", adds(999)), ""},
		"a deep value":                         {deep(10), review(t, "admission.k8s.io/v1", adds(1000)), tooDeep},
		"a patch that is none":                 {deep(10), review(t, "admission.k8s.io/v1", "{"), ""},
		"no patch":                             {deep(2000), review(t, "admission.k8s.io/v1", ""), ""},
		"a second response":                    {deep(10), `{"response":{"allowed":true},` + review(t, "", moves(496))[1:], tooDeep},
		"a response behind one":                {deep(10), `{"response":{"patch":"` + base64.StdEncoding.EncodeToString([]byte(moves(496))) + `"},"response":{"allowed":true}}`, tooDeep},
		"a response that has another spelling": {deep(10), `{"Response":{"patch":"` + base64.StdEncoding.EncodeToString([]byte(moves(496))) + `"}}`, ""},
		"a patch of numbers":                   {deep(10), `{"response":{"patch":[91,93]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, text, err := ask(t, tc.request, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.answer) })
			if tc.reason != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.reason)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(text).To(Equal(tc.answer))
		})
	}
}

// TestPatchesAfterRedirects: the object that a patch is for is that of the request.
func TestPatchesAfterRedirects(t *testing.T) {
	g := NewWithT(t)
	for code, reason := range map[int]string{http.StatusTemporaryRedirect: "", http.StatusSeeOther: "redirect with 307 or 308"} {
		_, _, err := ask(t, "{}", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/there" {
				http.Redirect(w, r, "/there", code)
				return
			}
			_, _ = io.WriteString(w, review(t, "admission.k8s.io/v1", `[{"op":"remove","path":"/a"}]`))
		})
		if reason == "" {
			g.Expect(err).NotTo(HaveOccurred())
			continue
		}
		g.Expect(err).To(MatchError(ContainSubstring(reason)))
	}
}

// TestAnswersThatBreak are errors, as they are without a bound.
func TestAnswersThatBreak(t *testing.T) {
	g := NewWithT(t)
	_, _, err := ask(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	})
	g.Expect(errors.Is(err, io.ErrUnexpectedEOF)).To(BeTrue(), "%v", err)
}
