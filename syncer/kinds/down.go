package kinds

import (
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Down is a kind that is synced down: the tenant declares objects, and the
// super cluster holds copies. T is a pointer to an API type.
type Down[T client.Object] struct {
	// Name is the name of the kind, such as ConfigMap.
	Name string
	// Object is an empty object, List an empty list.
	Object T
	List   client.ObjectList
	// Summary says in a few words how objects of the kind are synced. It
	// becomes the kind's row in README.md.
	Summary string
	// ClusterScoped is set for a kind without namespaces.
	ClusterScoped bool
	// Optional is set for a kind that spec.sync.kinds can turn off.
	Optional bool
	// Selector selects the objects to sync by labels, on both sides; nil
	// selects all. An object that it does not select is neither an object of
	// the tenant nor a copy.
	Selector labels.Selector

	// Desired returns the desired copy: a new object, whose metadata the engine
	// sets. The tenant has to correct an error; its text becomes an event.
	Desired func(v View, tenant T) (T, error)
	// Admit returns an error if no copy may be created. It is called before
	// each creation and never for an existing copy, which stays allowed. The
	// text becomes an event.
	Admit func(v View, tenant T) error
	// Merge writes the result of Desired, as far as it can be changed in place,
	// to a deep copy of the super cluster's object, which still has its
	// previous metadata.
	Merge func(super, desired T)
	// Subresources are the parts that are written by subresources, in this
	// order.
	Subresources []Subresource[T]

	// SuperKey and TenantKey translate keys, by metadata only. The default
	// translates the namespace and keeps the name. Set both or neither.
	SuperKey  func(t translate.Tenant, key client.ObjectKey) client.ObjectKey
	TenantKey func(super client.Object) client.ObjectKey

	// Replace reports whether the copy differs in immutable fields, so that it
	// has to be recreated.
	Replace func(super, desired T) bool
	// Current reports whether a copy has the fields that copies in it, or
	// copies that refer to it, rely on. Otherwise it is updated before they are
	// created. Nil means always.
	Current func(t translate.Tenant, super T) bool
	// ByChance reports whether the super cluster rejected a value that it chose
	// randomly for the copy, so that it may accept the same copy when it is
	// sent again. Nil means never.
	ByChance func(rejection error) bool
	// Skip reports whether an object stays in the tenant.
	Skip func(v View, tenant T) bool
	// Claims returns the values that an object of the super cluster has to
	// itself, such as a host name; View.Rivals finds objects of all kinds by
	// them. For a kind with Claims, the super cluster's cache holds all objects,
	// not only copies; a custom resource with Claims is a standing one.
	Claims func(super T) []string
	// OnDemand objects are only synced while another synced object refers to
	// them. For a kind without Skip, References, Back, Status and Mirror,
	// caches then only hold metadata, and the contents are read when they are
	// needed.
	OnDemand bool
	// References returns the objects that have to be synced down with this one.
	References func(tenant T) []Reference
	// Targets returns the addresses that an object directs traffic to. It is
	// reconciled when one of the tenant's mirrored objects gets or loses one of
	// them.
	Targets func(tenant T) []string
	// Omitted returns an error that names the part of an object that its copy
	// lacks, and the reason; nil if it lacks none. The text becomes an event.
	Omitted func(v View, tenant T) error
	// Tokens returns the tokens of the tenant that the copy reads, from the
	// Secret names.TokenSecret next to it; nil for a kind without tokens. Only
	// one kind, which is mirrored, can have them.
	Tokens func(tenant T) Tokens
	// Reserved reports whether a name is reserved for objects that the syncer
	// owns: a tenant's object with the name is rejected, and so are objects
	// that refer to it. Nil reserves none.
	Reserved func(name string) bool
	// Adopt reports whether an object that is not a copy, but has the name of
	// one in a namespace of the tenant, becomes the copy, because the super
	// cluster created it itself.
	Adopt func(super T) bool

	// Back writes values that the super cluster chose, and that the tenant's
	// object needs as well, to a deep copy of that object.
	Back func(v View, tenant, super T)
	// Status writes the copy's status to a deep copy of the tenant's object.
	Status func(v View, tenant, super T)
	// Same compares the fields that Status writes.
	Same func(a, b T) bool
	// Pending writes the reason why an object has no copy yet to a deep copy of
	// the tenant's object.
	Pending func(tenant T, reason, message string)
	// Mirror is set for objects whose lifetime is that of their copy, and that
	// run on a node.
	Mirror *Mirror[T]
	// Network returns the name of the network that an object names; empty for the
	// default one. Copies of the kind have the label of their network, and are
	// created when it can be used. The network of a mirrored object does not
	// change. Nil for a kind without networks.
	Network func(tenant T) string
	// InNetwork narrows a copy to its network; nil if the label suffices.
	InNetwork func(tenant, desired T, network string) error
	// Attach prepares a new copy for a network that prepares copies. The tenant has
	// to correct an error; its text becomes an event. Nil for a kind whose copies
	// are not prepared.
	Attach func(tenant, copied T) error
	// AnyNetwork is set for a kind whose copies depend on the network that they
	// name, and are also created while it cannot be used.
	AnyNetwork bool
	// Own are the objects of the kind that the syncer owns in each namespace, and
	// OwnInNetworks those of tenants with networks.
	Own           []Own[T]
	OwnInNetworks *OwnInNetworks[T]
	// Parts are limited in addition to the number of objects.
	Parts []Part[T]
	// MaxInNamespace is how many copies a tenant may have in a namespace,
	// whatever other limits allow; 0 if these suffice.
	MaxInNamespace int
	// Affects are the kinds whose copies depend on the copies of this kind in
	// their namespace.
	Affects []string
	// Digest returns a summary of the copies in a namespace for these kinds. It
	// is computed once after each change of a copy.
	Digest func(copies []T) any
}

// Erase returns the kind without the type of its objects. Nil hooks with an
// obvious default are set to it; the others stay nil.
func (d Down[T]) Erase() *Kind {
	return &Kind{
		Name: d.Name, Object: d.Object, List: d.List, selector: d.Selector,
		Summary: d.Summary, ClusterScoped: d.ClusterScoped, Optional: d.Optional,
		metadataOnly: d.OnDemand && d.Skip == nil && d.References == nil && d.Back == nil && d.Status == nil && d.Mirror == nil,
		Down: &Down[client.Object]{
			Name: d.Name, Object: d.Object, List: d.List, Selector: d.Selector,
			Desired: d.erasedDesired(), Admit: checks(d.Admit), Merge: changes(d.Merge),
			Subresources: eraseEach(d.Subresources, Subresource[T].erase),
			SuperKey:     or2(d.SuperKey, translate.Tenant.SuperKey), TenantKey: or(d.TenantKey, originKey),
			Replace:  or2(compares(d.Replace), func(_, _ client.Object) bool { return false }),
			Current:  or2(decides(d.Current), func(translate.Tenant, client.Object) bool { return true }),
			ByChance: or(d.ByChance, func(error) bool { return false }),
			Skip:     or2(decides(d.Skip), func(View, client.Object) bool { return false }),
			Claims:   reads(d.Claims), OnDemand: d.OnDemand, References: reads(d.References), Targets: reads(d.Targets),
			Omitted:  or2(checks(d.Omitted), func(View, client.Object) error { return nil }),
			Tokens:   reads(d.Tokens),
			Reserved: or(d.Reserved, func(string) bool { return false }),
			Adopt:    or(reads(d.Adopt), func(client.Object) bool { return false }),
			Back:     changesViewed(d.Back), Status: changesViewed(d.Status), Same: compares(d.Same), Pending: d.erasedPending(),
			Network: reads(d.Network), Attach: d.erasedAttach(), InNetwork: d.erasedInNetwork(), AnyNetwork: d.AnyNetwork,
			OwnInNetworks: d.OwnInNetworks.erase(),
			Mirror:        d.Mirror.erase(), Own: eraseEach(d.Own, Own[T].erase), Parts: eraseEach(d.Parts, Part[T].erase),
			MaxInNamespace: d.MaxInNamespace, Affects: d.Affects, Digest: d.erasedDigest(),
		},
	}
}

// erasedDesired returns Desired for objects of any type. It returns a nil
// interface, and not a nil pointer, on error.
func (d Down[T]) erasedDesired() func(View, client.Object) (client.Object, error) {
	return func(v View, obj client.Object) (client.Object, error) {
		desired, err := d.Desired(v, obj.(T))
		if err != nil {
			return nil, err
		}
		return desired, nil
	}
}

func (d Down[T]) erasedInNetwork() func(tenant, desired client.Object, network string) error {
	if d.InNetwork == nil {
		return func(client.Object, client.Object, string) error { return nil }
	}
	return func(tenant, desired client.Object, network string) error {
		return d.InNetwork(tenant.(T), desired.(T), network)
	}
}

func (d Down[T]) erasedAttach() func(tenant, copied client.Object) error {
	if d.Attach == nil {
		return nil
	}
	return func(tenant, copied client.Object) error { return d.Attach(tenant.(T), copied.(T)) }
}

func (d Down[T]) erasedPending() func(tenant client.Object, reason, message string) {
	if d.Pending == nil {
		return nil
	}
	return func(tenant client.Object, reason, message string) { d.Pending(tenant.(T), reason, message) }
}

func (d Down[T]) erasedDigest() func(copies []client.Object) any {
	if d.Digest == nil {
		return nil
	}
	return func(copies []client.Object) any {
		typed := make([]T, len(copies))
		for i, obj := range copies {
			typed[i] = obj.(T)
		}
		return d.Digest(typed)
	}
}

// originKey returns the tenant's key of a copy with the same name.
func originKey(super client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: translate.OriginOf(super).Namespace, Name: super.GetName()}
}
