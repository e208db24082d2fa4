package document

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
)

// Response converts the documents of one response: one object, or the events
// of a watch.
type Response struct {
	Namer naming.Namer
	Kind  kinds.Kind
	// Fields are the rules of the documents.
	Fields *kinds.Field
	// Many: the document is a list, or a Table of several objects. The name of its
	// kind does not show it: a CRD chooses that.
	Many bool
	// Namespace is that of the request in the tenant; empty if it has none.
	Namespace string
	// Finish completes a document that was converted, apart from a Status; nil if
	// nothing is to be done.
	Finish func(Object) error
	// Seal makes a token to continue a list of the super cluster's.
	Seal func(string) string

	// columns are those of the last Table that named them. Those that follow in a
	// watch do not.
	columns []any
}

// Up converts a document of the super cluster, in place.
func (r *Response) Up(object Object) error {
	r.seal(object)
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if isStatus(kind, version) {
		r.status(object)
		return nil
	}
	if err := r.convert(object, isTable(kind, version)); err != nil || r.Finish == nil {
		return err
	}
	return r.Finish(object)
}

func (r *Response) convert(object Object, isTable bool) error {
	switch {
	case isTable:
		return r.table(object)
	case r.Many:
		return r.list(object)
	}
	return r.object(object)
}

func isStatus(kind, version string) bool { return kind == "Status" && version == "v1" }

// isTable reports whether a type is that of Tables. A custom resource may have
// the same name.
func isTable(kind, version string) bool {
	return kind == "Table" && strings.HasPrefix(version, metav1.GroupName+"/")
}

// object converts one object.
func (r *Response) object(object Object) error {
	u, err := r.upOf(r.namespaceOf(object))
	if err == nil {
		_, err = walker{turn: u.turn}.walk(object, r.Fields)
	}
	return err
}

// upOf returns what converts an object in a namespace of the super cluster.
func (r *Response) upOf(namespace any) (up, error) {
	u := up{Namer: r.Namer, namespace: r.Namespace}
	if u.namespace != "" {
		return u, nil
	}
	own, err := u.own(namespace)
	u.namespace, _ = own.(string)
	return u, err
}

// namespaceOf returns the namespace of an object, or of which Namespace it is.
func (r *Response) namespaceOf(object Object) any {
	metadata, _ := object["metadata"].(Object)
	return metadata[r.namespaceField()]
}

// namespaceField is the field of the metadata that names the namespace.
func (r *Response) namespaceField() string {
	if r.Kind.IsNamespace() {
		return "name"
	}
	return "namespace"
}

func (r *Response) list(object Object) error {
	if version, ok := object["apiVersion"]; ok {
		object["apiVersion"] = r.listVersion(version)
	}
	listed, given := object["items"]
	items, ok := listed.([]any)
	if !given || !ok && listed != nil {
		return errShape // it could be anything
	}
	for _, item := range items {
		if each, ok := item.(Object); ok {
			if err := r.object(each); err != nil {
				return err
			}
		}
	}
	return nil
}

// listVersion returns the API version of a list as the tenant knows it.
func (r *Response) listVersion(version any) any {
	return up{Namer: r.Namer}.apiVersion(r.tenantVersion(version))
}

// status converts a Status: what has happened to which object, and why.
func (r *Response) status(status Object) {
	text := func(object Object, field string) {
		if value, ok := object[field].(string); ok {
			object[field] = r.Text(value)
		}
	}
	text(status, "message")
	details, _ := status["details"].(Object)
	text(details, "name")
	text(details, "group")
	causes, _ := details["causes"].([]any)
	for _, each := range causes {
		cause, _ := each.(Object)
		text(cause, "message")
	}
}

// seal replaces the token to continue a list.
func (r *Response) seal(object Object) {
	metadata, _ := object["metadata"].(Object)
	if token, ok := metadata["continue"].(string); ok && token != "" {
		metadata["continue"] = r.Seal(token)
	}
}
