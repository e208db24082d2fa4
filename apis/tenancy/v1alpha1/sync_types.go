package v1alpha1

// SyncMode selects which objects of a kind are synced.
//
// +kubebuilder:validation:Enum=Off;Referenced;All
type SyncMode string

const (
	// SyncOff syncs none; existing copies are deleted.
	SyncOff SyncMode = "Off"
	// SyncReferenced syncs the objects to which a synced object refers.
	SyncReferenced SyncMode = "Referenced"
	// SyncAll syncs every object.
	SyncAll SyncMode = "All"
)

// SyncSpec is what the syncer syncs for a tenant, where it differs from the
// default.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodeSelector) || (has(self.nodes) && self.nodes == 'All')",message="nodeSelector needs nodes: All, since other tenants see the nodes that run their pods"
type SyncSpec struct {
	// kinds selects which objects of a kind are synced. Default: of kinds that
	// can be Referenced the referenced ones, of other kinds all.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="!self.exists(k, k.kind == 'PersistentVolume' && k.mode == 'Off') || self.exists(k, k.kind == 'PersistentVolumeClaim' && k.mode == 'Off')",message="PersistentVolume can be off only where PersistentVolumeClaim is, since a claim is bound to a volume that the tenant sees"
	Kinds []KindSync `json:"kinds,omitempty"`

	// publish names classes of the super cluster that this tenant is offered,
	// in addition to those labelled tenancy.x-k8s.io/super.public=true, which
	// all tenants are offered.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=16
	Publish []PublishedClasses `json:"publish,omitempty"`

	// nodes selects the nodes of the super cluster that the tenant sees, as virtual
	// nodes. Referenced, the default, are those that run its pods. All are also
	// those that nodeSelector selects, before any pod runs there.
	// +optional
	// +kubebuilder:validation:Enum=Referenced;All
	Nodes SyncMode `json:"nodes,omitempty"`

	// nodeSelector has the labels of the super cluster's nodes that mode All shows.
	// Default: every node.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// customResources are synced like built-in kinds. Their definitions are
	// copied from the super cluster to the tenant.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=32
	CustomResources []CustomResourceSync `json:"customResources,omitempty"`

	// metadata are labels and annotations that are synced down in addition to
	// the default ones. A pattern allows a label or an annotation to act in the
	// super cluster, on its controllers, webhooks and nodes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Metadata []MetadataSync `json:"metadata,omitempty"`

	// patches change the copies of the tenant's objects before they are
	// written, one after the other. An object to which a patch cannot be
	// applied is not synced, and has an event that has the reason.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Patches []SyncPatch `json:"patches,omitempty"`
}

// PublishedClasses are classes of one kind that a tenant is offered.
type PublishedClasses struct {
	// kind is the kind.
	// +required
	Kind ClassKind `json:"kind"`
	// names are the names of the classes.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names"`
}

// SyncDirection is which way objects flow.
//
// +kubebuilder:validation:Enum=Down;Up
type SyncDirection string

const (
	// SyncDown copies the tenant's objects to the super cluster, and their
	// status back.
	SyncDown SyncDirection = "Down"
	// SyncUp copies objects of the super cluster to the tenant: those in the
	// tenant's namespaces and, of a resource without namespaces, those labelled
	// tenancy.x-k8s.io/super.public=true.
	SyncUp SyncDirection = "Up"
)

// CustomResourceSync is a custom resource that is synced.
type CustomResourceSync struct {
	// group is the API group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Group string `json:"group"`
	// version is the version in which objects are read and written.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Version string `json:"version"`
	// resource is the plural name, such as certificates.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource"`
	// direction is the direction of syncing. A cluster-scoped resource can only
	// be synced up.
	// +required
	Direction SyncDirection `json:"direction"`
}

// MetadataSync allows copies of kinds to have labels and annotations under
// their own keys. A pattern is a key, or a prefix of keys: a domain with its
// slash, such as example.com/, or a text before a *, such as
// example.com/team-*. Keys of tenancy.x-k8s.io, of Pod Security admission and
// of volume controllers always stay in the tenant.
//
// +kubebuilder:validation:XValidation:rule="has(self.labels) || has(self.annotations)",message="labels or annotations must be given"
type MetadataSync struct {
	// kinds are the kinds of the objects, such as Pod; custom resources by kind
	// and group, such as Certificate.cert-manager.io.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	Kinds []string `json:"kinds"`

	// labels are patterns of the keys of labels.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9][-A-Za-z0-9_.]*(/[-A-Za-z0-9_.]*)?\*?$`
	Labels []string `json:"labels,omitempty"`

	// annotations are patterns of the keys of annotations.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9][-A-Za-z0-9_.]*(/[-A-Za-z0-9_.]*)?\*?$`
	Annotations []string `json:"annotations,omitempty"`
}

// SyncPatch is a change to copies before they are written. It cannot change
// their names, their owner, or a field that is immutable in an existing copy.
//
// +kubebuilder:validation:XValidation:rule="has(self.set) != has(self.jsonPatch)",message="one of set and jsonPatch must be given"
type SyncPatch struct {
	// name is what messages call the patch.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// kinds are the kinds whose copies are patched, such as Pod; custom
	// resources by kind and group, such as Certificate.cert-manager.io.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	Kinds []string `json:"kinds"`

	// when is a CEL expression that selects the copies that are patched. It can
	// read object, the copy; self, the tenant's object; and tenant, with the
	// fields name, namespace and key. Default: every copy is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// set are fields with the CEL expressions of their values.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Set []FieldExpression `json:"set,omitempty"`

	// jsonPatch is a JSON Patch (RFC 6902), as JSON text.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16384
	JSONPatch string `json:"jsonPatch,omitempty"`
}

// FieldExpression is a field with the expression of its value.
type FieldExpression struct {
	// path is a JSON Pointer (RFC 6901) to the field, such as
	// /spec/nodeSelector/pool. Missing objects on the path are created.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path"`
	// expression is a CEL expression of the value, which reads what when does.
	// Null removes the field.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}
