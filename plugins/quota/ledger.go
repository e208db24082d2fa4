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

// lag is how long a write may be ahead of the cache. What was assumed for longer is looked at.
const lag = time.Minute

// ledger holds what every tenant has in the super cluster: what the cache has shown, and what is assumed because it was written and
// the cache has not shown it yet.
type ledger struct {
	mu       sync.Mutex
	accounts map[string]*account
	// gone are the objects whose deletion was seen: the answer to the request that created one may come later than that.
	gone map[types.UID]time.Time
}

// account is what one tenant has.
type account struct {
	charges map[object]charge
	used    corev1.ResourceList
	byClass map[string]corev1.ResourceList // of priority classes
}

// object is one that is charged for.
type object struct {
	count corev1.ResourceName // of the kind
	key   client.ObjectKey
}

// charge is what one object takes.
type charge struct {
	uid     types.UID // empty if it is not known to exist
	version string
	used    corev1.ResourceList
	class   string
	// review is when the object has to be looked at again, if no event comes before; zero if never.
	review time.Time
	// assumed: the cache has not shown it.
	assumed bool
}

func newLedger() *ledger {
	return &ledger{accounts: map[string]*account{}, gone: map[types.UID]time.Time{}}
}

// chargeOf is what an object takes as it is.
func chargeOf(k kind, obj client.Object, now time.Time) charge {
	c := charge{uid: obj.GetUID(), version: obj.GetResourceVersion(), used: k.usageOf(obj, now), class: classOf(obj)}
	if end := endOf(obj); end.After(now) {
		c.review = end
	}
	return c
}

// show charges a tenant for what the cache shows of an object, and says whether the tenant has less of anything than before.
func (l *ledger) show(tenant string, id object, c charge) (less bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lockedAccount(tenant)
	was, known := a.charges[id]
	if known && was.assumed && older(c.version, was.version) {
		return false
	}
	a.set(id, c)
	return known && lessOf(was, c)
}

// assume charges a tenant for what was written.
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

// remove takes an object away that is gone. Another one of its name stays.
func (l *ledger) remove(tenant string, id object, uid types.UID, now time.Time) (less bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[uid] = now
	a := l.accounts[tenant]
	if a == nil {
		return false
	}
	was, known := a.charges[id]
	if !known || was.uid != "" && was.uid != uid {
		return false
	}
	a.drop(id)
	if len(a.charges) == 0 {
		delete(l.accounts, tenant)
	}
	return true
}

// due are the objects that have to be looked at again. What nobody waits for any more is forgotten.
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

// settle replaces what was assumed of an object for too long by what there is: nil for nothing.
func (l *ledger) settle(tenant string, id object, there *charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if there != nil {
		l.lockedAccount(tenant).set(id, *there)
	} else if a := l.accounts[tenant]; a != nil {
		a.drop(id)
	}
}

// forget drops a tenant.
func (l *ledger) forget(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, tenant)
}

// without is what a tenant has beside one object, in all and of a priority class, and the charge for that object.
func (l *ledger) without(tenant string, id object, class string) (used, ofClass corev1.ResourceList, own charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[tenant]
	if a == nil {
		return corev1.ResourceList{}, corev1.ResourceList{}, charge{}
	}
	own = a.charges[id]
	used, ofClass = maps.Clone(a.used), maps.Clone(a.byClass[class])
	subtract(used, own.used)
	if class != "" && own.class == class {
		subtract(ofClass, own.used)
	}
	return used, ofClass, own
}

// usedBy is what a tenant has, in all and of a priority class.
func (l *ledger) usedBy(tenant, class string) (used, ofClass corev1.ResourceList) {
	used, ofClass, _ = l.without(tenant, object{}, class)
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

// lessOf says whether a change gives something back.
func lessOf(was, now charge) bool {
	for name, quantity := range was.used {
		if left := now.used[name]; left.Cmp(quantity) < 0 {
			return true
		}
	}
	return was.class != now.class
}

// older says whether one state of an object came before another. What cannot be compared counts as newer.
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
