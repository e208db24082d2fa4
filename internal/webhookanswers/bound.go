// Package webhookanswers bounds what the clients of tenants' webhooks accept.
// Upstream reads an answer as a whole, decodes other formats than JSON, too, and
// applies a patch whatever becomes of the object.
package webhookanswers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
)

const (
	// leastAnswer is how many bytes an answer of a webhook may have, beside twice
	// those of the request. A patch may be longer than the object, and is in base64.
	leastAnswer = 3 << 20
	// longestText is how much is read of an answer that is not in JSON: enough for
	// the message of an error.
	longestText = 1 << 10
	// highestCode is that of a response in HTTP. Upstream sends the code of an answer
	// as that of its response, which panics with one of four digits.
	highestCode = 599
)

// Bound returns a transport for requests to webhooks, for admission and conversions. An
// answer that has more than 3 MiB and twice the bytes of its request, is in protobuf,
// or is nested deeper than 128 levels is an error of the request, and so is a JSON
// patch that may nest the object of the request deeper than 1,000 levels, and a
// status code that HTTP does not have. Of an answer in text, 1 KiB is read. No
// request is sent again at a time that the webhook chooses.
func Bound(next http.RoundTripper) http.RoundTripper { return bound{next} }

type bound struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	data, isJSON, err := read(answer.Body, leastAnswer+2*max(0, r.ContentLength))
	err = errors.Join(err, answer.Body.Close())
	if err == nil && isJSON {
		err = check(r, data)
	}
	if err != nil {
		return nil, err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	answer.Header.Del("Retry-After")
	return answer, nil
}

// read returns an answer in JSON, or the beginning of one in text.
func read(body io.Reader, most int64) (data []byte, isJSON bool, err error) {
	data, err = io.ReadAll(io.LimitReader(body, longestText))
	if err != nil {
		return nil, false, err
	}
	if !utilyaml.IsJSONBuffer(data) {
		if bytes.HasPrefix(data, []byte(nesting.ProtobufPrefix)) {
			err = errors.New("the webhook answers in protobuf: only JSON is accepted")
		}
		return data, false, err
	}
	rest, err := io.ReadAll(io.LimitReader(body, most+1-int64(len(data))))
	if err != nil {
		return nil, false, err
	}
	data = append(data, rest...)
	if int64(len(data)) > most {
		return nil, false, fmt.Errorf("the webhook answers with more than %d bytes", most)
	}
	return data, true, nil
}

// check returns why an answer in JSON may not be used.
func check(r *http.Request, answer []byte) error {
	if _, err := nesting.CheckText(answer, runtime.ContentTypeJSON, false); err != nil {
		return err
	}
	var review struct {
		Response struct {
			Patch  []byte `json:"patch"`
			Status struct {
				Code int32 `json:"code"`
			} `json:"status"`
		} `json:"response"`
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(answer, &review) // for the client to refuse, which decodes it as this does
	if code := review.Response.Status.Code; code > highestCode {
		return fmt.Errorf("the webhook answers with the status code %d: it can be at most %d", code, highestCode)
	}
	if len(review.Response.Patch) == 0 {
		return nil
	}
	asked, err := bodyOf(r)
	if err != nil {
		return err
	}
	return nesting.CheckPatch(review.Response.Patch, nesting.Depth(asked), nesting.DeepestPatched)
}

// errNoBody is the request after a redirect that changed its method.
var errNoBody = errors.New("the webhook answers with a patch after a redirect to a request without a body: redirect with 307 or 308")

// bodyOf returns the body of a request that was sent.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.GetBody == nil {
		return nil, errNoBody
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	return data, errors.Join(err, body.Close())
}
