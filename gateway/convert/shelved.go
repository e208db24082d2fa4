package convert

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/rbac"
)

// serveShelved serves a request for objects that the super cluster has as custom
// resources. These have no strategic merge patches, need a resource version for
// an update, and are not what the tenant's users may write without a check: the
// gateway reads the object that it changes.
func (c *call) serveShelved(w http.ResponseWriter, r *http.Request) error {
	query, err := c.query(r.URL.Query())
	if err != nil {
		return err
	}
	form := formOf(r.Header)
	converter := c.converter(query)
	converter.Finish = c.finish(r.Context(), form, query)
	response, err := c.shelved(w, r, query, form)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if c.info.Verb == verbWatch && response.StatusCode == http.StatusOK {
		first, err := c.firstEvents(r.Context(), form, query)
		if err != nil {
			return err
		}
		watchEvents(w, response, converter, first...)
		return nil
	}
	shared, ok, err := c.sharedInstead(r.Context(), response)
	switch {
	case err != nil:
		return err
	case ok && c.info.Verb == verbGet:
		return c.answerShared(w, r, converter, form.of(shared))
	case ok:
		return apierrors.NewForbidden(c.kind.GroupResource(), c.name, c.errShared())
	}
	return c.answer(w, r, response, converter)
}

// sharedInstead returns the shared object that a request names, if the tenant has
// no copy.
func (c *call) sharedInstead(ctx context.Context, response *http.Response) (document.Object, bool, error) {
	if response.StatusCode != http.StatusNotFound || c.name == "" || !c.hasShared() {
		return nil, false, nil
	}
	return c.sharedObject(ctx, c.name)
}

// firstEvents returns the shared objects, if a watch begins with all that exists.
func (c *call) firstEvents(ctx context.Context, form form, query url.Values) ([]document.Object, error) {
	if version := query.Get("resourceVersion"); version != "" && version != "0" {
		return nil, nil
	}
	return c.sharedObjects(ctx, form, query)
}

// shelved sends the request to the super cluster.
func (c *call) shelved(w http.ResponseWriter, r *http.Request, query url.Values, form form) (*http.Response, error) {
	switch c.info.Verb {
	case verbCreate:
		return c.createShelved(w, r, query)
	case verbUpdate, verbPatch:
		return c.changeShelved(w, r, query)
	}
	if c.info.Verb == verbWatch && query.Get("sendInitialEvents") != "" && c.hasShared() {
		return nil, errNoInitialEvents
	}
	body, err := c.body(w, r)
	if err != nil {
		return nil, err
	}
	return c.forward(r, query, outgoing{method: r.Method, accept: form.accept(c.info.Verb), body: body})
}

func (c *call) createShelved(w http.ResponseWriter, r *http.Request, query url.Values) (*http.Response, error) {
	mediaType, data, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	object, err := c.parse(mediaType, data)
	if err != nil {
		return nil, err
	}
	c.setType(object)
	nameObject(object)
	if metadata, ok := object["metadata"].(document.Object); ok {
		delete(metadata, "generateName") // a custom resource cannot have each prefix
	}
	if err := c.prepare(r.Context(), nil, object); err != nil {
		return nil, err
	}
	if err := c.confirm(r.Context(), nil, object); err != nil {
		return nil, err
	}
	if data, err = c.down(object); err != nil {
		return nil, err
	}
	return c.forward(r, query, outgoing{method: http.MethodPost, accept: jsonType, body: body{data, jsonType}})
}

// setType sets the type of an object that does not say it, which is that of the
// request: the super cluster requires it of objects in their other type.
func (c *call) setType(object document.Object) {
	if object["kind"] == nil || object["kind"] == "" {
		object["kind"] = c.kind.Kind
	}
	if object["apiVersion"] == nil || object["apiVersion"] == "" {
		object["apiVersion"] = c.version().String()
	}
}

// attempts is how often a change is tried again that does not name the version of
// the object that it changes, as in an apiserver.
const attempts = 5

// changeShelved updates, patches or applies.
func (c *call) changeShelved(w http.ResponseWriter, r *http.Request, query url.Values) (*http.Response, error) {
	change, err := c.changeOf(w, r)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		response, conditional, err := c.tryChange(r, query, change)
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusConflict || conditional || attempt == attempts {
			return response, nil
		}
		_ = response.Body.Close()
	}
}

// tryChange changes the object as it is now. The result is conditional if the
// user has named the version.
func (c *call) tryChange(r *http.Request, query url.Values, change change) (_ *http.Response, conditional bool, err error) {
	before, err := c.current(r)
	if err != nil {
		return nil, false, err
	}
	if change.applied != nil {
		response, err := c.apply(r, query, before, change.applied)
		return response, change.isConditional(), err
	}
	if before == nil {
		return nil, false, apierrors.NewNotFound(c.kind.GroupResource(), c.name)
	}
	after, err := change.of(before)
	if err != nil {
		return nil, false, err
	}
	version := versionOf(before)
	conditional = versionOf(after) != "" && versionOf(after) != version
	if versionOf(after) == "" {
		setVersion(after, version)
	}
	if err := c.prepare(r.Context(), before, after); err != nil {
		return nil, false, err
	}
	if err := c.confirm(r.Context(), before, after); err != nil {
		return nil, false, err
	}
	data, err := c.down(after)
	if err != nil {
		return nil, false, err
	}
	response, err := c.forward(r, query, outgoing{method: http.MethodPut, accept: c.accept(r), body: body{data, jsonType}})
	return response, conditional || change.isConditional(), err
}

// accept returns the formats of a changed object: the super cluster has no Tables of
// shelved ones.
func (c *call) accept(r *http.Request) string {
	if c.kind.IsStored() {
		return jsonType
	}
	return accept(r.Header.Values("Accept"))
}

// apply sends a server-side apply. What it makes of the object is known after a
// dry run, and confirmed for this version of the object.
func (c *call) apply(r *http.Request, query url.Values, before, applied document.Object) (*http.Response, error) {
	applied = copyOf(applied)
	if before != nil && versionOf(applied) == "" {
		setVersion(applied, versionOf(before))
	}
	data, err := c.down(applied)
	if err != nil {
		return nil, err
	}
	out := outgoing{method: http.MethodPatch, accept: jsonType, body: body{data, r.Header.Get("Content-Type")}}
	dry := maps.Clone(query)
	dry.Set("dryRun", "All")
	response, err := c.forward(r, dry, out)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices {
		return response, err
	}
	after, err := c.read(response)
	if err != nil {
		return nil, err
	}
	if err := c.confirm(r.Context(), before, after); err != nil {
		return nil, err
	}
	return c.forward(r, query, out)
}

// current returns the object that the request names, as the tenant knows it; nil
// if it does not exist. The tenant gets a copy of a shared one.
func (c *call) current(r *http.Request) (document.Object, error) {
	object, err := c.get(r)
	if !apierrors.IsNotFound(err) {
		return object, err
	}
	copied, err := c.copyShared(r)
	if err != nil || !copied {
		return nil, err
	}
	return c.get(r)
}

// get returns the object that the request names, as the tenant knows it.
func (c *call) get(r *http.Request) (document.Object, error) {
	response, err := c.forward(r, nil, outgoing{method: http.MethodGet, accept: jsonType}) //nolint:bodyclose // read closes it
	if err != nil {
		return nil, err
	}
	return c.read(response)
}

// read returns the object of a response, as the tenant knows it.
func (c *call) read(response *http.Response) (document.Object, error) {
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, errSilent
	}
	object, err := document.ParseTrusted(data)
	if err != nil {
		return nil, errSilent
	}
	if err := c.converter(nil).Up(object); err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, statusError(object)
	}
	return object, nil
}

// copyShared makes the tenant's own copy of a shared object. It reports false if
// there is none.
func (c *call) copyShared(r *http.Request) (bool, error) {
	if !c.hasShared() {
		return false, nil
	}
	shared, ok, err := c.sharedObject(r.Context(), c.name)
	if err != nil || !ok {
		return false, err
	}
	if c.kind.Offered {
		return false, apierrors.NewForbidden(c.kind.GroupResource(), c.name, errOffered)
	}
	metadata, _ := shared["metadata"].(document.Object)
	for _, field := range []string{"uid", resourceVersion, "creationTimestamp", "generation"} {
		delete(metadata, field)
	}
	data, err := c.down(shared)
	if err != nil {
		return false, err
	}
	create := *c
	create.storedName = "" // the document has it
	response, err := create.forward(r, nil, outgoing{method: http.MethodPost, accept: jsonType, body: body{data, jsonType}})
	if err != nil {
		return false, err
	}
	if response.StatusCode == http.StatusConflict { // another request has just made it
		_ = response.Body.Close()
		return true, nil
	}
	_, err = create.read(response)
	return true, err
}

// confirm returns an error if the user may not make of an object what it becomes.
// Before is nil for one that is created.
func (c *call) confirm(ctx context.Context, before, after document.Object) error {
	if c.isRBAC() {
		return c.confirmGrant(ctx, before, after)
	}
	if c.kind.IsAdmission() {
		return c.confirmAdmission(ctx, before, after)
	}
	if before == nil {
		return c.confirmName(ctx, nameOf(after))
	}
	return c.confirmFields(before, after)
}

// confirmGrant returns an error if the user may not grant what a role or binding
// grants.
func (c *call) confirmGrant(ctx context.Context, before, after document.Object) error {
	who, _ := request.UserFrom(ctx)
	parsed, err := rbac.Parse(c.info.Resource, after)
	if err != nil {
		return badRequest(err)
	}
	var old rbac.Object
	if before != nil {
		if old, err = rbac.Parse(c.info.Resource, before); err != nil {
			return err
		}
	}
	err = c.RBAC.Confirm(ctx, who, c.info.Namespace, old, parsed)
	if _, missing := errors.AsType[*apierrors.StatusError](err); err == nil || missing {
		return err
	}
	return apierrors.NewForbidden(c.kind.GroupResource(), parsed.GetName(), err)
}
