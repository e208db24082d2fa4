package convert

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/tables"
)

// form is how a client wants objects: as they are, or as a Table, or only their
// metadata.
type form struct{ as, version string }

const (
	asTable    = "Table"
	asMetadata = "PartialObjectMetadata"
)

// formOf returns the form that a client prefers.
func formOf(header http.Header) form {
	for clause := range strings.SplitSeq(strings.Join(header.Values("Accept"), ","), ",") {
		mediaType, parameters, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil || mediaType != jsonType {
			continue
		}
		return form{as: strings.TrimSuffix(parameters["as"], "List"), version: parameters["v"]}
	}
	return form{}
}

// accept returns the form in which the super cluster returns custom resources:
// the gateway makes the Tables.
func (f form) accept(verb string) string {
	if f.as != asMetadata {
		return jsonType
	}
	as := asMetadata
	if verb == verbList || verb == verbDeleteCollection {
		as += "List"
	}
	return jsonType + ";as=" + as + ";g=meta.k8s.io;v=v1"
}

// of returns an object in this form, apart from that of a Table.
func (f form) of(object document.Object) document.Object {
	if f.as != asMetadata {
		return object
	}
	return document.Object{
		"apiVersion": metav1.SchemeGroupVersion.String(), "kind": asMetadata, "metadata": object["metadata"],
	}
}

// finish returns what completes a response: shared objects of the last page of a
// list, the rules of aggregated roles, and the form of a Table.
func (c *call) finish(ctx context.Context, form form, query url.Values) func(document.Object) error {
	return func(object document.Object) error {
		if c.info.Verb == verbList && c.hasShared() {
			if err := c.addShared(ctx, object, form, query); err != nil {
				return err
			}
		}
		c.RBAC.Aggregate(object)
		if form.as == asTable {
			return tables.Print(object, tables.Options{
				Kind: c.kind.Kind, Version: form.version, Include: metav1.IncludeObjectPolicy(query.Get("includeObject")),
			})
		}
		return nil
	}
}
