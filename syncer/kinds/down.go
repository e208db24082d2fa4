package kinds

import (
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Down is a kind that the tenant declares: the super cluster holds a copy. T is a pointer to an API type.
type Down[T client.Object] struct {
	// Name is the kind's, such as ConfigMap.
	Name string
	// Object is an empty object, List an empty list.
	Object T
	List   client.ObjectList
	// Selector narrows by labels what is looked at, on both sides; nil is all. An object that it leaves out is neither one of the
	// tenant's nor a copy.
	Selector labels.Selector

	// Desired is the copy that the super cluster should hold: a new object, whose metadata the engine fills in. An error
	// is the tenant's to mend; its text becomes an event.
	Desired func(v View, tenant T) (T, error)
	// Admit says why no copy may be made; nil if one may. It is asked before each is made and never about one that exists:
	// what was allowed once goes on. The text becomes an event.
	Admit func(v View, tenant T) error
	// Merge writes what Desired says, as far as it can be changed in place, into a copy of the super cluster's object, which
	// still has the metadata of the last time.
	Merge func(super, desired T)
	// Subresources are what goes down by other ways than with the object itself, one after the other.
	Subresources []Subresource[T]

	// SuperKey and TenantKey translate keys, by metadata alone. By default the namespace is translated and the name kept. Both or none.
	SuperKey  func(t translate.Tenant, key client.ObjectKey) client.ObjectKey
	TenantKey func(super client.Object) client.ObjectKey

	// Replace says that the copy differs in what cannot be changed in place, so that it has to be made anew.
	Replace func(super, desired T) bool
	// Current reports whether a copy has what the copies in it, or that refer to it, rely on.
	// One that has not is updated before they are created. Nil is always.
	Current func(t translate.Tenant, super T) bool
	// ByChance reports whether the super cluster rejected a copy for what it chose itself, at
	// random, so that it may accept the same copy if that is sent again. Nil is never.
	ByChance func(rejection error) bool
	// Skip reports whether an object stays in the tenant.
	Skip func(v View, tenant T) bool
	// Claims returns what an object of the super cluster claims for itself, such as the name of a host; View.Rivals finds objects by
	// it. With Claims, the super cluster's cache holds all objects of the kind, not only copies.
	Claims func(super T) []string
	// OnDemand: objects go down only while something that runs refers to them. If nothing but that decides about a kind (it has no
	// Skip, References, Back, Status and Mirror), caches hold metadata alone, and the contents are read when they are needed.
	OnDemand bool
	// References are the objects that have to go down with this one.
	References func(tenant T) []Reference
	// Targets are the addresses that an object leads to. It is reconciled when one of the tenant's mirrored objects gets or loses
	// one of them.
	Targets func(tenant T) []string
	// Omitted returns which part of an object its copy lacks, and why; nil if it lacks nothing. The text becomes an event.
	Omitted func(v View, tenant T) error
	// Tokens are those of the tenant's that the copy reads, from the Secret names.TokenSecret beside it; nil for a kind without. One
	// kind can have them, which is mirrored.
	Tokens func(tenant T) Tokens
	// Reserved reports whether a name is kept for the syncer's own objects: a tenant's object of that name is rejected, and so is what
	// refers to it. Nil reserves none.
	Reserved func(name string) bool
	// Adopt says whether an object that is nobody's copy, but has the name of one in a namespace of the tenant, becomes the copy,
	// because the super cluster made it by itself.
	Adopt func(super T) bool

	// Back writes what the super cluster chose, and the tenant's object has to say as well, into a copy of that.
	Back func(v View, tenant, super T)
	// Status writes the copy's status into a copy of the tenant's object.
	Status func(v View, tenant, super T)
	// Same compares what Status writes.
	Same func(a, b T) bool
	// Held writes into a copy of the tenant's object that it has no copy in the super cluster for now, and why.
	Held func(tenant T, reason, message string)
	// Mirror is set for objects that live and die with their copy and sit on a node.
	Mirror *Mirror[T]
	// Own are the objects of the kind that the syncer has of its own in each namespace.
	Own []Own[T]
	// Parts are what is limited beside the number of objects.
	Parts []Part[T]
	// Affects are the kinds whose copies depend on the copies of this kind that are in their namespace.
	Affects []string
	// Digest is what they need to know of these copies. It is computed once after each change, of all copies in the namespace.
	Digest func(copies []T) any
}

// Erase returns the kind with the type of its objects erased. Hooks with an obvious default have it where they were nil; the others
// stay nil.
func (d Down[T]) Erase() *Kind {
	return &Kind{
		Name: d.Name, Object: d.Object, List: d.List, selector: d.Selector,
		metadataOnly: d.OnDemand && d.Skip == nil && d.References == nil && d.Back == nil && d.Status == nil && d.Mirror == nil,
		Down: &Down[client.Object]{
			Name: d.Name, Object: d.Object, List: d.List, Selector: d.Selector,
			Desired: d.erasedDesired(), Admit: checks(d.Admit), Merge: changes(d.Merge),
			Subresources: eraseEach(d.Subresources, Subresource[T].erase),
			SuperKey:     or2(d.SuperKey, translate.Tenant.SuperKey), TenantKey: or(d.TenantKey, originKey),
			Replace:  or2(compares(d.Replace), func(_, _ client.Object) bool { return false }),
			Current:  or2(judges(d.Current), func(translate.Tenant, client.Object) bool { return true }),
			ByChance: or(d.ByChance, func(error) bool { return false }),
			Skip:     or2(judges(d.Skip), func(View, client.Object) bool { return false }),
			Claims:   reads(d.Claims), OnDemand: d.OnDemand, References: reads(d.References), Targets: reads(d.Targets),
			Omitted:  or2(checks(d.Omitted), func(View, client.Object) error { return nil }),
			Tokens:   reads(d.Tokens),
			Reserved: or(d.Reserved, func(string) bool { return false }),
			Adopt:    or(reads(d.Adopt), func(client.Object) bool { return false }),
			Back:     changesViewed(d.Back), Status: changesViewed(d.Status), Same: compares(d.Same), Held: d.erasedHeld(),
			Mirror: d.Mirror.erase(), Own: eraseEach(d.Own, Own[T].erase), Parts: eraseEach(d.Parts, Part[T].erase),
			Affects: d.Affects, Digest: d.erasedDigest(),
		},
	}
}

// erasedDesired returns Desired for objects of any type, without a nil pointer where it fails.
func (d Down[T]) erasedDesired() func(View, client.Object) (client.Object, error) {
	return func(v View, obj client.Object) (client.Object, error) {
		desired, err := d.Desired(v, obj.(T))
		if err != nil {
			return nil, err
		}
		return desired, nil
	}
}

func (d Down[T]) erasedHeld() func(tenant client.Object, reason, message string) {
	if d.Held == nil {
		return nil
	}
	return func(tenant client.Object, reason, message string) { d.Held(tenant.(T), reason, message) }
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

// originKey returns the tenant's key of a copy that has the same name.
func originKey(super client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: translate.OriginOf(super).Namespace, Name: super.GetName()}
}
