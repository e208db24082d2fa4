package quota

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lag is how long a write may be ahead of the cache. Assumed charges that are
// older are reviewed.
const lag = time.Minute

// ledger holds the usage of every tenant in the super cluster: the objects in
// the cache, and objects that are assumed because they were written and are not
// in the cache yet.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account
	// gone holds objects whose deletion was observed: the answer to the request
	// that created one may arrive later.
	gone map[types.UID]time.Time
}

// account is the usage of one tenant.
type account struct {
	charges map[object]charge
	used    corev1.ResourceList
	byClass map[string]corev1.ResourceList // by priority class
}

// object identifies an object that is charged for, or a write to one.
type object struct {
	count corev1.ResourceName // of the kind
	key   client.ObjectKey
	// awaits is empty for the object itself, and the UID of the object for the
	// growth by a write that may be under way.
	awaits types.UID
}

// charge is the usage of one object.
type charge struct {
	uid     types.UID // empty if it is not known to exist
	version string
	used    corev1.ResourceList
	class   string
	// review is when the object is reviewed unless an event comes first; zero
	// for never.
	review time.Time
	// assumed marks a charge that the cache has not confirmed yet.
	assumed bool
}

func newLedger() *ledger {
	return &ledger{accounts: map[string]*account{}, gone: map[types.UID]time.Time{}}
}

// chargeOf returns the charge for an object in its current state.
func chargeOf(k kind, obj client.Object, now time.Time) charge {
	c := charge{uid: obj.GetUID(), version: obj.GetResourceVersion(), used: k.usageOf(obj, now), class: classOf(obj)}
	if end := endOf(obj); end.After(now) {
		c.review = end
	}
	return c
}

// observe charges a tenant for an object in the cache, and reports whether its
// usage of any resource decreased.
func (l *ledger) observe(tenant string, id object, c charge) (less bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lockedAccount(tenant)
	landed := a.settle(id, c)
	was, known := a.charges[id]
	if known && was.assumed && older(c.version, was.version) {
		return landed
	}
	a.set(id, c)
	return landed || known && lessOf(was, c)
}

// assume charges a tenant for a written object.
func (l *ledger) assume(tenant string, id object, c charge, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lockedAccount(tenant)
	was, known := a.charges[id]
	_, gone := l.gone[c.uid]
	if gone || known && older(c.version, was.version) {
		return
	}
	c.assumed, c.review = true, now.Add(lag)
	a.set(id, c)
}

// reserve charges a tenant for what a write adds to the usage of an object until
// the write is observed. The version of the charge is the one before the write.
func (l *ledger) reserve(tenant string, id object, c charge, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lockedAccount(tenant)
	if own := a.charges[id]; own.uid == c.uid {
		c.used = growth(own.used, c.used)
	}
	id.awaits = c.uid
	if earlier, known := a.charges[id]; known {
		// Of writes to one version at most one succeeds.
		c.used = most(earlier.used, c.used)
		if older(c.version, earlier.version) {
			c.version = earlier.version
		}
	}
	if len(c.used) > 0 {
		c.review = now.Add(lag)
		a.set(id, c)
	}
}

// settle drops what is reserved for a write to an object, if its observed state
// shows that the write has landed or failed. It reports whether it did.
func (a *account) settle(id object, observed charge) bool {
	id.awaits = observed.uid
	reserved, known := a.charges[id]
	if !known || reserved.version != "" && !older(reserved.version, observed.version) {
		return false
	}
	a.drop(id)
	return true
}

// remove deletes the charge for a deleted object, unless it is for another
// object of that name. It reports whether it did.
func (l *ledger) remove(tenant string, id object, uid types.UID, now time.Time) (less bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[uid] = now
	a := l.accounts[tenant]
	if a == nil {
		return false
	}
	write := object{id.count, id.key, uid}
	_, awaited := a.charges[write]
	a.drop(write)
	was, known := a.charges[id]
	if !known || was.uid != "" && was.uid != uid {
		return awaited
	}
	a.drop(id)
	if len(a.charges) == 0 {
		delete(l.accounts, tenant)
	}
	return true
}

// due returns the objects to review, and forgets deletions that no answer can
// be late for.
func (l *ledger) due(now time.Time) map[string][]object {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.gone, func(_ types.UID, at time.Time) bool { return now.Sub(at) > lag })
	due := map[string][]object{}
	for tenant, a := range l.accounts {
		for id, c := range a.charges {
			if !c.review.IsZero() && !now.Before(c.review) {
				due[tenant] = append(due[tenant], id)
			}
		}
	}
	return due
}

// settle replaces an assumed charge by the observed one: nil if there is no
// such object.
func (l *ledger) settle(tenant string, id object, there *charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if there != nil {
		l.lockedAccount(tenant).set(id, *there)
	} else if a := l.accounts[tenant]; a != nil {
		a.drop(id)
	}
}

// forget deletes the account of a tenant.
func (l *ledger) forget(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, tenant)
}

// without returns the usage of a tenant without one object, in total and of a
// priority class, and the charge for that object. A UID excludes an earlier
// object of the same name, and includes writes to the object that are under way.
func (l *ledger) without(tenant string, id object, uid types.UID, class string) (used, ofClass corev1.ResourceList, own charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[tenant]
	if a == nil {
		return corev1.ResourceList{}, corev1.ResourceList{}, charge{}
	}
	used, ofClass = maps.Clone(a.used), maps.Clone(a.byClass[class])
	exclude := func(c charge) {
		subtract(used, c.used)
		if class != "" && c.class == class {
			subtract(ofClass, c.used)
		}
	}
	if own = a.charges[id]; uid != "" && own.uid != "" && own.uid != uid {
		own = charge{}
	}
	exclude(own)
	if uid != "" {
		id.awaits = uid
		exclude(a.charges[id])
	}
	return used, ofClass, own
}

// usedBy returns the usage of a tenant, in total and of a priority class.
func (l *ledger) usedBy(tenant, class string) (used, ofClass corev1.ResourceList) {
	used, ofClass, _ = l.without(tenant, object{}, "", class)
	return used, ofClass
}

func (l *ledger) lockedAccount(tenant string) *account {
	a := l.accounts[tenant]
	if a == nil {
		a = &account{charges: map[object]charge{}, used: corev1.ResourceList{}, byClass: map[string]corev1.ResourceList{}}
		l.accounts[tenant] = a
	}
	return a
}

func (a *account) set(id object, c charge) {
	a.drop(id)
	a.charges[id] = c
	add(a.used, c.used)
	if c.class == "" {
		return
	}
	if a.byClass[c.class] == nil {
		a.byClass[c.class] = corev1.ResourceList{}
	}
	add(a.byClass[c.class], c.used)
}

func (a *account) drop(id object) {
	c, known := a.charges[id]
	if !known {
		return
	}
	delete(a.charges, id)
	subtract(a.used, c.used)
	if c.class != "" {
		subtract(a.byClass[c.class], c.used)
	}
}

// lessOf reports whether a change frees any resource.
func lessOf(was, now charge) bool {
	for name, quantity := range was.used {
		if left := now.used[name]; left.Cmp(quantity) < 0 {
			return true
		}
	}
	return was.class != now.class
}

// growth returns by how much usage grows.
func growth(was, now corev1.ResourceList) corev1.ResourceList {
	more := maps.Clone(now)
	subtract(more, was)
	maps.DeleteFunc(more, func(_ corev1.ResourceName, quantity resource.Quantity) bool { return quantity.Sign() <= 0 })
	return more
}

// most returns the larger one of each of two quantities.
func most(a, b corev1.ResourceList) corev1.ResourceList {
	all := maps.Clone(a)
	add(all, growth(a, b))
	return all
}

// older reports whether version a precedes version b. Versions that cannot be
// compared count as newer.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func add(to, more corev1.ResourceList) { each(to, more, (*resource.Quantity).Add) }

func subtract(from, less corev1.ResourceList) { each(from, less, (*resource.Quantity).Sub) }

func each(of, by corev1.ResourceList, change func(*resource.Quantity, resource.Quantity)) {
	for name, quantity := range by {
		sum := of[name].DeepCopy()
		change(&sum, quantity)
		if sum.IsZero() {
			delete(of, name)
			continue
		}
		of[name] = sum
	}
}
