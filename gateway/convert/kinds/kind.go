// Package kinds says of each kind of a converted tenant how the gateway serves
// it, and which of its fields hold names. It is a table without I/O.
package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// Class is how the gateway serves a kind.
type Class string

// The classes.
const (
	// Placed: a namespaced kind, in the namespaces of the super cluster that are
	// the tenant's.
	Placed Class = "Placed"
	// Prefixed: a kind without a namespace, under a name that begins with the
	// cluster key.
	Prefixed Class = "Prefixed"
	// Shelved: a kind that would have an effect in the whole super cluster, so
	// that the tenant's objects are kept apart from it.
	Shelved Class = "Shelved"
	// Shown: objects of the super cluster that the tenant may read.
	Shown Class = "Shown"
	// Answered: the gateway answers, without the super cluster.
	Answered Class = "Answered"
	// Refused: the tenant has no such objects.
	Refused Class = "Refused"
)

// Kind is one kind of objects. The versions of an API group that serve it have
// the same rules.
type Kind struct {
	Group, Resource, Kind string
	Class                 Class
	// Reason is why requests for it are refused; empty if it is served.
	Reason string
	// Uncreated is why the tenant does not create objects of the kind; empty if it
	// does.
	Uncreated string
	// Rules are the fields that hold names.
	Rules Rules
	// Cells are the columns of Tables that hold names.
	Cells map[string]Means
	// Reserves: the platform has objects of the kind in the tenant's namespaces,
	// which the tenant does not see. Their names have the form of
	// names.PlatformPolicy, and they have the label names.VCName.
	Reserves bool
	// Subresources are those that exist.
	Subresources map[string]Subresource
	// Stored is how the super cluster has the objects, if it is in another way.
	Stored Stored
	// Offered: the tenant also sees the objects of the super cluster that the
	// platform offers, and reads them alone.
	Offered bool
	// Immutable are the fields of a shelved object that cannot change.
	Immutable []string
	// Defaults are the values of such fields that an object may omit.
	Defaults map[string]string
	// InNamespaces: its objects have namespaces, although it is not placed.
	InNamespaces bool
	// Verbs are those of a kind that is shown, and ReadOnly is why it has no others.
	Verbs    []string
	ReadOnly string

	fields *Field
	// others are the trees of subresources that are other documents.
	others map[string]*Field
	// custom: it is of a CRD of the tenant.
	custom bool
}

// Stored is how the super cluster has the objects of a kind that it has as
// objects of another type. Resource and kind have the same names.
type Stored struct {
	// Group and Version are those of the type; empty if it is the same.
	Group, Version string
	// InRoot: objects without a namespace are in the tenant's root namespace.
	InRoot bool
	// Whole: requests for a subresource are for the object itself, of which the
	// gateway decides what they change.
	Whole bool
}

// IsStored reports whether the super cluster has the objects as objects of
// another type.
func (k Kind) IsStored() bool { return k.Stored.Group != "" }

// StoredAs returns the type in the super cluster of a version of the kind.
func (k Kind) StoredAs(version string) schema.GroupVersion {
	if k.IsStored() {
		return schema.GroupVersion{Group: k.Stored.Group, Version: k.Stored.Version}
	}
	return schema.GroupVersion{Group: k.Group, Version: version}
}

// Namespaced reports whether the objects of a kind that is served have a
// namespace.
func (k Kind) Namespaced() bool { return k.Class == Placed || k.InNamespaces }

// Served reports whether requests for it are served.
func (k Kind) Served() bool { return k.Reason == "" }

// IsNamespace reports whether it is the kind Namespace.
func (k Kind) IsNamespace() bool { return k.Group == "" && k.Resource == "namespaces" }

// IsNode reports whether it is the kind Node.
func (k Kind) IsNode() bool { return k.Group == "" && k.Resource == "nodes" }

// GroupResource returns the API group and the resource.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// Fields returns the rules as a tree of fields.
func (k Kind) Fields() *Field { return k.fields }

// FieldsOf returns the rules of the documents of a subresource.
func (k Kind) FieldsOf(subresource string) *Field {
	if other := k.others[subresource]; other != nil {
		return other
	}
	return k.fields
}

// Form is the form of what a subresource accepts and returns.
type Form string

// The forms.
const (
	// SameDocument: the object itself.
	SameDocument Form = "SameDocument"
	// OtherDocument: an object of another kind.
	OtherDocument Form = "OtherDocument"
	// Stream: bytes of a container.
	Stream Form = "Stream"
	// Proxy: requests of any path to a server in a pod.
	Proxy Form = "Proxy"
)

// Subresource is how a subresource is served. One without a form is refused.
type Subresource struct {
	Form   Form
	Reason string
	// Rules are those of the fields of another document, in addition to its
	// metadata.
	Rules Rules
}

// Find returns the kind of a resource. One that is not in the table is refused.
func Find(group, resource string) Kind {
	if kind, ok := table[schema.GroupResource{Group: group, Resource: resource}]; ok {
		return kind
	}
	return Kind{Group: group, Resource: resource, Class: Refused, Reason: "the kind is not served to this tenant"}
}

// FindKind returns the kind of an object's type, or false if none in the table
// has the name.
func FindKind(group, kind string) (Kind, bool) {
	found, ok := byKind[schema.GroupKind{Group: group, Kind: kind}]
	return found, ok
}

// FindStored returns the kind that the super cluster has as a type, or false if
// there is none.
func FindStored(stored schema.GroupVersion, kind string) (Kind, bool) {
	found := byStored[stored.WithKind(kind)]
	return found, found.IsStored()
}

// All returns the table.
func All() []Kind { return all() }
