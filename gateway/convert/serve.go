package convert

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
)

// serveObjects serves a request for objects.
func (c *call) serveObjects(w http.ResponseWriter, r *http.Request) error {
	if err := cmp.Or(c.checkCRDs(), c.checkChurn()); err != nil {
		return err
	}
	query, err := c.query(r.URL.Query())
	if err != nil {
		return err
	}
	if c.patchesCRD() {
		return c.patchCRD(w, r, query)
	}
	body, err := c.body(w, r)
	if err != nil {
		return err
	}
	send := outgoing{method: r.Method, accept: accept(r.Header.Values("Accept")), body: body}
	response, err := c.forward(r, query, send)
	for attempt := 1; err == nil && attempt < addressAttempts && c.choseReserved(response); attempt++ {
		response, err = c.forward(r, query, send)
	}
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	converter := c.converter(query)
	if c.info.Verb == verbWatch && response.StatusCode == http.StatusOK {
		watchEvents(w, response, converter)
		return nil
	}
	return c.answer(w, r, response, converter)
}

// outgoing is what the super cluster gets of a request, besides its target.
type outgoing struct {
	method, accept string
	body           body
}

// forward sends a request to the super cluster.
func (c *call) forward(r *http.Request, query url.Values, send outgoing) (*http.Response, error) {
	target, content := c.target(query).String(), bytes.NewReader(send.body.data)
	out, err := http.NewRequestWithContext(r.Context(), send.method, target, content) //nolint:gosec // of the super cluster
	if err != nil {
		return nil, err
	}
	out.Header.Set("Accept", send.accept)
	out.Header.Set("User-Agent", r.UserAgent()) // names the manager of fields
	if send.body.mediaType != "" {
		out.Header.Set("Content-Type", send.body.mediaType)
	}
	if err := c.setRequester(r.Context(), out.Header); err != nil {
		return nil, err
	}
	response, err := c.transport().RoundTrip(out)
	if err != nil {
		return nil, errSilent
	}
	return response, nil
}

// accept returns the formats that are requested of the super cluster: JSON, of the
// objects or of Tables and metadata, as the client prefers.
func accept(asked []string) string {
	var formats []string
	for clause := range strings.SplitSeq(strings.Join(asked, ","), ",") {
		mediaType, parameters, found := strings.Cut(strings.TrimSpace(clause), ";")
		if found && mediaType == jsonType && strings.Contains(parameters, "as=") {
			formats = append(formats, mediaType+";"+parameters)
		}
	}
	return strings.Join(append(formats, jsonType), ",")
}

// converter returns what converts the documents of the response.
func (c *call) converter(query url.Values) *document.Response {
	list := c.list(query)
	return &document.Response{
		Namer: naming.Namer{Key: c.Tenant, Namespaces: known{c}}, Kind: c.kind, Fields: c.kind.FieldsOf(c.info.Subresource),
		Namespace: c.info.Namespace, Many: c.info.Verb == verbList || c.info.Verb == verbDeleteCollection,
		Seal: func(token string) string { return c.Tokens.seal(token, list) },
	}
}

// known are the namespaces of the index, and the one of the request, which may
// only be created for a dry run.
type known struct{ *call }

// TenantName implements naming.Namespaces.
func (k known) TenantName(clusterKey, super string) (string, bool) {
	switch {
	case super == "":
	case super == k.namespace:
		return k.info.Namespace, true
	case super == k.givenStored && k.createsNamespace():
		return k.given, true
	}
	return k.Namespaces.TenantName(clusterKey, super)
}

// answer writes the response to a request, converted: while it is read, if it is
// objects that nothing else depends on.
func (c *call) answer(w http.ResponseWriter, r *http.Request, response *http.Response, converter *document.Response) error {
	if response.StatusCode < http.StatusMultipleChoices && c.info.Verb != verbDeleteCollection && !c.isAdmitted(r, response) {
		c.headers(w.Header(), response.Header, converter)
		return writeStream(w, r, response, converter)
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return errSilent
	}
	object, err := document.ParseTrusted(data)
	switch {
	case response.StatusCode == http.StatusTooManyRequests && err != nil:
		return apierrors.NewTooManyRequests("the super cluster has too many requests in flight", 1)
	case err != nil:
		return errSilent
	}
	if c.isAdmitted(r, response) {
		if err := c.admitCreated(r.Context(), object); err != nil {
			return err
		}
	}
	if err := converter.Up(object); err != nil {
		return err
	}
	c.headers(w.Header(), response.Header, converter)
	return writeDocument(w, r, response.StatusCode, object)
}

// isAdmitted reports whether the response is about a Namespace or CRD that was
// created.
func (c *call) isAdmitted(r *http.Request, response *http.Response) bool {
	created := response.StatusCode == http.StatusCreated && r.URL.Query().Get("dryRun") == ""
	return created && (c.kind.IsCRD() || c.makesNamespace())
}

// admitCreated admits a Namespace or CRD that was created, of which the super
// cluster has written the response.
func (c *call) admitCreated(ctx context.Context, response document.Object) error {
	if c.kind.IsCRD() {
		crd := &resources.CRD{}
		if err := c.readCreated(ctx, response, crd); err != nil {
			return err
		}
		c.admitCRD(ctx, crd)
		return nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	if err := c.readCreated(ctx, response, namespace); err != nil {
		return err
	}
	return c.admit(ctx, namespace)
}

// readCreated reads an object that was created from the response, or from the
// super cluster if the client has asked for another form, such as a Table.
func (c *call) readCreated(ctx context.Context, response document.Object, into any) error {
	if response["kind"] == c.kind.Kind {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(response, into)
	}
	code, err := c.send(ctx, c.Super, http.MethodGet, c.pathOf(c.storedType(), "", c.givenStored, ""), nil, into)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("read a %s that was created: the super cluster responded %d", c.kind.Kind, code)
	}
	return err
}

// headers sets the headers of a response: those that a client needs.
func (*call) headers(to, from http.Header, converter *document.Response) {
	if after := from.Get("Retry-After"); after != "" {
		to.Set("Retry-After", after)
	}
	for _, warning := range from.Values("Warning") {
		to.Add("Warning", converter.Text(warning))
	}
}
