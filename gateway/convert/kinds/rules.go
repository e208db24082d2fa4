package kinds

import (
	"maps"
	"strings"
)

// Means is what a field holds.
type Means string

// The meanings of fields.
const (
	// OwnNamespace is the namespace of the object, or the name of a Namespace.
	OwnNamespace Means = "OwnNamespace"
	// NamespaceName is the name of a namespace, which need not exist.
	NamespaceName Means = "NamespaceName"
	// NamespaceSelector is a label selector over namespaces.
	NamespaceSelector Means = "NamespaceSelector"
	// OwnPodSelector is the selector of a NetworkPolicy, which the super cluster
	// keeps from selecting pods.
	OwnPodSelector Means = "OwnPodSelector"
	// Labels are labels or annotations, some of which are reserved.
	Labels Means = "Labels"
	// NamespaceLabels are the labels of a Namespace.
	NamespaceLabels Means = "NamespaceLabels"
	// Owner is one owner reference.
	Owner Means = "Owner"
	// ManagedFields says who manages which fields, reserved labels included.
	ManagedFields Means = "ManagedFields"
	// ManagedNamespaceFields is the same of a Namespace.
	ManagedNamespaceFields Means = "ManagedNamespaceFields"
	// Text is a message for people, written by the super cluster.
	Text Means = "Text"
	// VolumeName is the name of a PersistentVolume.
	VolumeName Means = "VolumeName"
	// Audience is one of a token.
	Audience Means = "Audience"
	// FieldPath is the path of a field of a pod that its containers read.
	FieldPath Means = "FieldPath"
	// SecretType is the type of a Secret.
	SecretType Means = "SecretType"
	// APIVersion is the group and version of a kind, perhaps of a custom resource.
	APIVersion Means = "APIVersion"
	// CRDName is the name of a CRD.
	CRDName Means = "CRDName"
	// CRDGroup is the API group of a CRD.
	CRDGroup Means = "CRDGroup"
	// ConversionClient is how the conversion webhook of a CRD is called: the super
	// cluster calls the gateway instead.
	ConversionClient Means = "ConversionClient"
	// Hidden is a field of the platform, which must be absent.
	Hidden Means = "Hidden"
	// TypeVersion is the group and version of the object's type.
	TypeVersion Means = "TypeVersion"
	// StoredName is the name of a shelved object.
	StoredName Means = "StoredName"
	// RootNamespace is the namespace of an object in the root namespace, which has
	// none for the tenant.
	RootNamespace Means = "RootNamespace"
	// RootOwner is one owner reference of such an object.
	RootOwner Means = "RootOwner"
	// Reference is a subject or a role of a binding, of which the API group has a
	// default.
	Reference Means = "Reference"
	// Unserved is a field that must be absent or false, for the rule's reason.
	Unserved Means = "Unserved"
)

// Rule is what a field holds. Reason is why an unserved one is refused. Tenant
// and Super are a type's group and version on the two sides, if they differ.
type Rule struct {
	Means  Means
	Reason string

	Tenant, Super string
}

// Rules are those of fields by their paths, such as
// spec.ingress[*].from[*].namespaceSelector.
type Rules map[string]Rule

// means are the rules of fields that hold the same.
func means(m Means, paths ...string) Rules {
	rules := make(Rules, len(paths))
	for _, path := range paths {
		rules[path] = Rule{Means: m}
	}
	return rules
}

// unserved are the rules of fields that are refused for one reason.
func unserved(reason string, paths ...string) Rules {
	rules := make(Rules, len(paths))
	for _, path := range paths {
		rules[path] = Rule{Means: Unserved, Reason: reason}
	}
	return rules
}

// join returns all rules of several.
func join(parts ...Rules) Rules {
	joined := Rules{}
	for _, part := range parts {
		maps.Copy(joined, part)
	}
	return joined
}

// below returns rules with their paths below a field.
func below(path string, rules Rules) Rules {
	moved := make(Rules, len(rules))
	for each, rule := range rules {
		moved[path+"."+each] = rule
	}
	return moved
}

// metadata has the rules of the metadata of objects and of templates.
var metadata = below("metadata", join(
	means(OwnNamespace, "namespace"),
	means(Labels, "labels", "annotations"),
	means(Owner, "ownerReferences[*]"),
	means(ManagedFields, "managedFields"),
))

// common are the rules of all kinds.
var common = join(metadata, means(Text, "status.conditions[*].message"))

// allRules returns the rules of a kind, with the common ones. A rule of a list
// as a whole wins over one of its elements.
func (k Kind) allRules() Rules {
	all := join(common, k.storedRules(), k.Rules)
	for path := range k.Rules {
		delete(all, path+items)
	}
	return all
}

// items is the step of a path from a list to its elements.
const items = "[*]"

// Field is a node of the tree of rules: it has a rule, or fields, or elements.
type Field struct {
	Rule   Rule
	Fields map[string]*Field
	Items  *Field
}

// tree returns rules as a tree.
func tree(rules Rules) *Field {
	root := &Field{}
	for path, rule := range rules {
		at := root
		for step := range strings.SplitSeq(path, ".") {
			name, isList := strings.CutSuffix(step, items)
			if at = at.field(name); isList {
				at = at.items()
			}
		}
		at.Rule = rule
	}
	return root
}

func (f *Field) field(name string) *Field {
	if f.Fields == nil {
		f.Fields = map[string]*Field{}
	}
	if f.Fields[name] == nil {
		f.Fields[name] = &Field{}
	}
	return f.Fields[name]
}

func (f *Field) items() *Field {
	if f.Items == nil {
		f.Items = &Field{}
	}
	return f.Items
}
