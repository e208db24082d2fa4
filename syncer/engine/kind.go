package engine

import (
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Kind is one type of object and how it flows between a tenant and the super cluster: a [Down] or an [Up]. Its functions are
// pure. They get objects out of shared caches and change none of them, except for those documented to be copies; a new object
// shares no memory with one of theirs, for the client writes the answers of servers into it.
type Kind interface {
	spec() *kind
}

// Whole returns empty objects of the kinds of which the super cluster's cache has to hold all objects, and not only those that carry
// the label of a tenant: those that flow up, and those whose objects have claims.
func Whole(kinds []Kind) []client.Object {
	var whole []client.Object
	for _, k := range kinds {
		if spec := k.spec(); spec.up != nil || spec.down.claims != nil {
			whole = append(whole, spec.object)
		}
	}
	return whole
}

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

// Subresource is a part of an object that is written through a path of its own.
type Subresource[T client.Object] struct {
	// Name is the subresource's, such as resize.
	Name string
	// Admit returns why a part may not be synced down, which Merge then leaves out; nil if everything may, as without Admit. Parts
	// that the copy has already stay. The text becomes an event.
	Admit func(v View, super, tenant T) error
	// Merge writes what the tenant's object says into a copy of the super cluster's.
	Merge func(v View, super, tenant T)
	// Parts are what Merge has added, one by one: new copies of the super cluster's object that have one of them each. Where the super
	// cluster refuses all together, each is tried by itself. Nil for what is one thing.
	Parts func(super, merged T) []T
}

// Mirror is how an object is tied to its copy: when the one is deleted so is the other, with the tenant's grace period.
type Mirror[T client.Object] struct {
	// Started says whether the tenant's object has had a copy: it is then not made a second time.
	Started func(tenant T) bool
	// Node is the node that an object is on; empty if none.
	Node func(obj T) string
	// Ended says whether what the copy ran has come to its end.
	Ended func(super T) bool
	// Bound is a copy of the tenant's object as binding it to a node leaves it.
	Bound func(tenant T, node string) T
	// GracePeriodSeconds is how long the deletion of the object may take.
	GracePeriodSeconds func(obj T) *int64
	// Addresses are those that a running copy has to itself.
	Addresses func(super T) []string
}

// Up is a kind that the super cluster shows to the tenant. A tenant sees what is in its namespaces, unless Node, Class or
// Namespace say otherwise.
type Up[T client.Object] struct {
	// Name is the kind's, such as Event.
	Name string
	// Object is an empty object, List an empty list.
	Object T
	List   client.ObjectList

	// Desired is what the tenant should hold: a new object with its name and namespace, or nil if the tenant should not
	// see it.
	Desired func(v View, super T) T
	// Merge writes what Desired says into a copy of the tenant's object, but for the status; Status, which may be nil,
	// writes that.
	Merge  func(tenant, desired T)
	Status func(tenant, desired T)
	// Replace says that the tenant's object differs in what cannot be changed in place, so that it has to be made anew.
	Replace func(tenant, desired T) bool
	// Back writes what a tenant may change into a copy of the super cluster's object.
	Back func(v View, super, tenant T)

	// Node is set for a kind of which a tenant sees those whose name is that of a node that runs its pods.
	Node bool
	// Class is set for a kind that tenants choose from: they see what is published, to all or to them.
	Class bool
	// Namespace is the namespace of the super cluster by which an object without one belongs to a tenant; empty if none.
	Namespace func(super T) string
	// Expires: objects go by themselves and are never deleted in the tenant.
	Expires bool
}

// View is what the functions of a kind may look at beside the object.
type View struct {
	// Tenant is whose object it is, or who is going to see it.
	Tenant translate.Tenant
	// Namespace is the tenant's name of the namespace that the object is in, or belongs to.
	Namespace string
	// Lookup finds the tenant's object behind a super object of a kind that flows down; nil if there is none, or if the super
	// object is not the one with this UID. An empty UID is any. Of a kind whose contents no cache holds, it finds the metadata.
	Lookup func(kind schema.GroupKind, superKey client.ObjectKey, uid types.UID) client.Object
	// Rivals returns the super cluster's objects of a kind that have a claim and are outside of the tenant's namespaces.
	Rivals func(kind, claim string) []client.Object
	// Copy returns the tenant's copy of a kind and name in the super cluster's namespace of this one; nil if there is none.
	Copy func(kind, name string) client.Object
	// Digest is that of the tenant's copies of a kind in the super cluster's namespace of this one, as far as is known; nil for a
	// kind without.
	Digest func(kind string) any
	// Offers says whether the super cluster shows the tenant the class of this kind and name.
	Offers func(kind, name string) bool
	// RunsAt reports whether a mirrored object of the tenant has an address to itself in the super cluster.
	RunsAt func(address string) bool
}

// kind is a Kind with its type erased.
type kind struct {
	name string
	gvk  schema.GroupVersionKind
	// resource is the kind's name in limits.
	resource string
	cache    *reader // that holds the super cluster's objects
	object   client.Object
	list     client.ObjectList
	// selector may be nil.
	selector labels.Selector
	down     *down
	up       *up
}

// fresh is a new empty object.
func (k *kind) fresh() client.Object {
	return k.object.DeepCopyObject().(client.Object)
}

// is reports whether an object is of the kind: by its type, which an object of many kinds completes by what it says of itself.
func (k *kind) is(obj client.Object) bool {
	says := obj.GetObjectKind().GroupVersionKind()
	if reflect.TypeOf(obj) != reflect.TypeOf(k.object) {
		return k.byMetadata() && reflect.TypeOf(obj) == reflect.TypeOf(k.watched()) && says == k.gvk
	}
	return says == k.gvk || says.Empty() && k.object.GetObjectKind().GroupVersionKind().Empty()
}

// down is a Down with its type erased. Admit, claims, references, targets, tokens, back, status, same, held, mirror, own and digest may
// be nil.
type down struct {
	desired      func(View, client.Object) (client.Object, error)
	admit        func(View, client.Object) error
	merge        func(super, desired client.Object)
	subresources []subresource
	superKey     func(translate.Tenant, client.ObjectKey) client.ObjectKey
	tenantKey    func(super client.Object) client.ObjectKey
	replace      func(super, desired client.Object) bool
	current      func(t translate.Tenant, super client.Object) bool
	byChance     func(rejection error) bool
	skip         func(View, client.Object) bool
	claims       func(super client.Object) []string
	references   func(client.Object) []Reference
	targets      func(client.Object) []string
	omitted      func(View, client.Object) error
	tokens       func(client.Object) Tokens
	back         func(v View, tenant, super client.Object)
	status       func(v View, tenant, super client.Object)
	same         func(a, b client.Object) bool
	held         func(tenant client.Object, reason, message string)
	mirror       *mirror
	own          []own
	parts        []part
	affects      []string
	digest       func(copies []client.Object) any
	onDemand     bool
	// byMetadata: caches hold the metadata alone.
	byMetadata bool
	adopt      func(super client.Object) bool
	reserved   func(name string) bool
}

// subresource is a Subresource with its type erased.
type subresource struct {
	name  string
	admit func(v View, super, tenant client.Object) error
	merge func(v View, super, tenant client.Object)
	parts func(super, merged client.Object) []client.Object
}

// mirror is a Mirror with its type erased.
type mirror struct {
	started   func(client.Object) bool
	node      func(client.Object) string
	ended     func(client.Object) bool
	bound     func(client.Object, string) client.Object
	grace     func(client.Object) *int64
	addresses func(super client.Object) []string
}

// up is an Up with its type erased. Status and back may be nil.
type up struct {
	desired   func(View, client.Object) client.Object
	merge     func(tenant, desired client.Object)
	status    func(tenant, desired client.Object)
	replace   func(tenant, desired client.Object) bool
	back      func(v View, super, tenant client.Object)
	namespace func(super client.Object) string
	node      bool
	class     bool
	expires   bool
}

func (d Down[T]) spec() *kind {
	e := &down{
		desired: func(v View, obj client.Object) (client.Object, error) {
			desired, err := d.Desired(v, obj.(T))
			if err != nil {
				return nil, err
			}
			return desired, nil
		},
		merge:      pairOf(d.Merge),
		superKey:   func(t translate.Tenant, key client.ObjectKey) client.ObjectKey { return t.SuperKey(key) },
		tenantKey:  originKey,
		replace:    func(super, desired client.Object) bool { return d.Replace != nil && d.Replace(super.(T), desired.(T)) },
		skip:       func(v View, obj client.Object) bool { return d.Skip != nil && d.Skip(v, obj.(T)) },
		onDemand:   d.OnDemand,
		byMetadata: d.OnDemand && d.Skip == nil && d.References == nil && d.Back == nil && d.Status == nil && d.Mirror == nil,
		adopt:      func(obj client.Object) bool { return d.Adopt != nil && d.Adopt(obj.(T)) },
		reserved:   func(name string) bool { return d.Reserved != nil && d.Reserved(name) },
		current:    func(t translate.Tenant, obj client.Object) bool { return d.Current == nil || d.Current(t, obj.(T)) },
		byChance:   func(rejection error) bool { return d.ByChance != nil && d.ByChance(rejection) },
	}
	if d.SuperKey != nil {
		e.superKey, e.tenantKey = d.SuperKey, d.TenantKey
	}
	if d.Admit != nil {
		e.admit = func(v View, obj client.Object) error { return d.Admit(v, obj.(T)) }
	}
	if d.References != nil {
		e.references = func(obj client.Object) []Reference { return d.References(obj.(T)) }
	}
	d.eraseTargets(e)
	if d.Tokens != nil {
		e.tokens = func(obj client.Object) Tokens { return d.Tokens(obj.(T)) }
	}
	if d.Back != nil {
		e.back = viewed(d.Back)
	}
	if d.Status != nil {
		e.status = viewed(d.Status)
		e.same = func(a, b client.Object) bool { return d.Same(a.(T), b.(T)) }
	}
	if d.Held != nil {
		e.held = func(tenant client.Object, reason, message string) { d.Held(tenant.(T), reason, message) }
	}
	for _, sub := range d.Subresources {
		e.subresources = append(e.subresources, sub.erase())
	}
	if d.Digest != nil {
		e.digest = func(copies []client.Object) any { return d.Digest(typedAs[T](copies)) }
	}
	e.mirror, e.affects = d.Mirror.erase(), d.Affects
	for _, o := range d.Own {
		e.own = append(e.own, o.erase())
	}
	for _, p := range d.Parts {
		e.parts = append(e.parts, p.erase())
	}
	return &kind{name: d.Name, object: d.Object, list: d.List, selector: d.Selector, down: e}
}

// eraseTargets erases the types of the functions that say what copies claim and where they lead.
func (d Down[T]) eraseTargets(e *down) {
	if d.Claims != nil {
		e.claims = func(super client.Object) []string { return d.Claims(super.(T)) }
	}
	if d.Targets != nil {
		e.targets = func(obj client.Object) []string { return d.Targets(obj.(T)) }
	}
	e.omitted = func(v View, obj client.Object) error {
		if d.Omitted == nil {
			return nil
		}
		return d.Omitted(v, obj.(T))
	}
}

// originKey is the tenant's key of a copy that has the same name.
func originKey(super client.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: translate.OriginOf(super).Namespace, Name: super.GetName()}
}

// typedAs gives objects their type back.
func typedAs[T client.Object](objects []client.Object) []T {
	typed := make([]T, len(objects))
	for i, obj := range objects {
		typed[i] = obj.(T)
	}
	return typed
}

// pairOf erases the type of a function of two objects; nil stays nil.
func pairOf[T client.Object](f func(a, b T)) func(a, b client.Object) {
	if f == nil {
		return nil
	}
	return func(a, b client.Object) { f(a.(T), b.(T)) }
}

// viewed erases the type of a function of two objects that looks around.
func viewed[T client.Object](f func(v View, a, b T)) func(v View, a, b client.Object) {
	return func(v View, a, b client.Object) { f(v, a.(T), b.(T)) }
}

func (sub Subresource[T]) erase() subresource {
	return subresource{
		name: sub.Name,
		admit: func(v View, super, tenant client.Object) error {
			if sub.Admit == nil {
				return nil
			}
			return sub.Admit(v, super.(T), tenant.(T))
		},
		merge: viewed(sub.Merge),
		parts: func(super, merged client.Object) []client.Object {
			if sub.Parts == nil {
				return nil
			}
			var parts []client.Object
			for _, part := range sub.Parts(super.(T), merged.(T)) {
				parts = append(parts, part)
			}
			return parts
		},
	}
}

func (m *Mirror[T]) erase() *mirror {
	if m == nil {
		return nil
	}
	return &mirror{
		started: func(obj client.Object) bool { return m.Started(obj.(T)) },
		node:    func(obj client.Object) string { return m.Node(obj.(T)) },
		ended:   func(obj client.Object) bool { return m.Ended(obj.(T)) },
		bound:   func(obj client.Object, node string) client.Object { return m.Bound(obj.(T), node) },
		grace:   func(obj client.Object) *int64 { return m.GracePeriodSeconds(obj.(T)) },
		addresses: func(super client.Object) []string {
			if m.Addresses == nil {
				return nil
			}
			return m.Addresses(super.(T))
		},
	}
}

func (u Up[T]) spec() *kind {
	e := &up{
		desired: func(v View, super client.Object) client.Object {
			var none T
			if obj := u.Desired(v, super.(T)); client.Object(obj) != client.Object(none) {
				return obj
			}
			return nil
		},
		merge:  pairOf(u.Merge),
		status: pairOf(u.Status),
		replace: func(tenant, desired client.Object) bool {
			return u.Replace != nil && u.Replace(tenant.(T), desired.(T))
		},
		namespace: client.Object.GetNamespace,
		node:      u.Node,
		class:     u.Class,
		expires:   u.Expires,
	}
	if u.Back != nil {
		e.back = viewed(u.Back)
	}
	if u.Namespace != nil {
		e.namespace = func(super client.Object) string { return u.Namespace(super.(T)) }
	}
	return &kind{name: u.Name, object: u.Object, list: u.List, up: e}
}
