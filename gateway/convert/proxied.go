package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
)

// errPage is a page that is too large to be converted.
var errPage = apierrors.NewGenericServerResponse(http.StatusBadGateway, "", schema.GroupResource{}, "",
	fmt.Sprintf("the page is larger than %d bytes", document.MaxBytes), 0, true)

// convertProxied converts the response of a server: the super cluster's apiserver
// writes its own path into redirects and pages, and adds headers.
func (c *call) convertProxied(response *http.Response) error {
	for name := range response.Header {
		if name == "Audit-Id" || strings.HasPrefix(name, "X-Kubernetes-Pf-") {
			delete(response.Header, name)
		}
	}
	if to := response.Header.Get("Location"); to != "" {
		response.Header.Set("Location", c.tenantPath(to))
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case mediaType == "text/html":
		return replaceBody(response, func(data []byte) []byte { return []byte(c.tenantPath(string(data))) })
	case response.StatusCode >= http.StatusBadRequest:
		return c.convertRejection(response, mediaType)
	}
	return nil
}

// convertRejection converts an error that may be the super cluster's apiserver's:
// a Status in a form that the client accepts, or a text.
func (c *call) convertRejection(response *http.Response, mediaType string) error {
	if mediaType == "text/plain" {
		return replaceBody(response, func(data []byte) []byte { return []byte(c.text(data)) })
	}
	form, ok := runtime.SerializerInfoForMediaType(statusForms.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil
	}
	return replaceBody(response, func(data []byte) []byte {
		status, ok := statusIn(form.Serializer, data)
		if !ok {
			return data // all else is the server's
		}
		response.Header.Set("Content-Type", jsonType)
		return c.errorUp(status)
	})
}

// statusForms are those in which an apiserver writes a Status.
var statusForms = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))

// statusIn returns the Status that data is, in JSON.
func statusIn(form runtime.Decoder, data []byte) ([]byte, bool) {
	object, _, err := form.Decode(data, nil, nil)
	status, ok := object.(*metav1.Status)
	if err != nil || !ok {
		return nil, false
	}
	status.SetGroupVersionKind(metav1.Unversioned.WithKind("Status")) // which not all forms keep
	written, err := json.Marshal(status)
	return written, err == nil
}

// tenantPath returns a text with the paths of the resource as the tenant has
// them.
func (c *call) tenantPath(text string) string {
	super := c.pathOf(c.version(), c.namespace, c.storedName, c.info.Subresource)
	return strings.ReplaceAll(text, super, c.pathOf(c.version(), c.info.Namespace, c.name, c.info.Subresource))
}

// replaceBody replaces the body of a response.
func replaceBody(response *http.Response, convert func([]byte) []byte) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, document.MaxBytes+1))
	if err != nil {
		return err
	}
	if len(data) > document.MaxBytes {
		return errPage
	}
	_ = response.Body.Close()
	data = convert(data)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	response.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return nil
}
