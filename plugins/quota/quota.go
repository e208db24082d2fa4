// Package quota is the validator of spec.quota: what a tenant may have in the super cluster, over all its namespaces. It counts as
// Kubernetes' own quotas do.
package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// ID is the plugin's.
const ID = "quota"

// Quota is the validator.
type Quota struct {
	env    plugins.Environment
	kinds  map[schema.GroupKind]kind
	ledger *ledger
	locks  plugins.TenantLocks

	// counted is closed when all that tenants have is in the ledger, and what they may have is known.
	counted chan struct{}
	// loosened are the tenants that may have come to have room, changed those whose status may differ.
	loosened, changed *notices
	metrics           *metrics

	mu      sync.RWMutex
	tenants map[string]tenant

	// volumes serializes reading a volume and charging for it. Until volumesKnown is set, claims may be missing from the cache.
	volumes      sync.Mutex
	volumesKnown atomic.Bool
}

// tenant is what is known of a tenant.
type tenant struct {
	vc     client.ObjectKey
	limits limits
	err    error // why the limits cannot be told
}

// New makes a quota that counts nothing before its plugin is made.
func New() *Quota {
	return &Quota{
		kinds:    map[schema.GroupKind]kind{},
		ledger:   newLedger(),
		counted:  make(chan struct{}),
		loosened: newNotices(),
		changed:  newNotices(),
		tenants:  map[string]tenant{},
	}
}

// Registration is the plugin, which is made once.
func (q *Quota) Registration() plugins.Registration {
	return plugins.Registration{ID: ID, InitFn: func(env plugins.Environment) (plugins.Validator, error) { return q, q.init(env) }}
}

func (q *Quota) init(env plugins.Environment) error {
	q.env = env
	for _, k := range kinds() {
		gvk, err := apiutil.GVKForObject(k.object, clientgoscheme.Scheme)
		if err != nil {
			return fmt.Errorf("naming the kind of %T: %w", k.object, err)
		}
		q.kinds[gvk.GroupKind()] = k
	}
	var err error
	q.metrics, err = newMetrics(env.Registerer)
	return err
}

// Name is what messages call it.
func (*Quota) Name() string { return ID }

// Kinds are those that are counted.
func (q *Quota) Kinds() []schema.GroupKind {
	all := make([]schema.GroupKind, 0, len(q.kinds))
	for kind := range q.kinds {
		all = append(all, kind)
	}
	return all
}

// Locker is the lock of a tenant; nil if there is no such VirtualCluster.
func (q *Quota) Locker(tenant string) plugins.Locker {
	if q.isCounted() {
		if _, known := q.tenant(tenant); !known {
			return nil
		}
	}
	return q.locks.Of(tenant)
}

// Validate rejects what would be more than the tenant may have.
func (q *Quota) Validate(ctx context.Context, r plugins.Request) error {
	select {
	case <-q.counted:
	case <-ctx.Done():
		return fmt.Errorf("what tenants have is not counted yet: %w", context.Cause(ctx))
	}
	t, _ := q.tenant(r.Tenant.Key)
	if t.err != nil || t.limits.none() {
		return t.err
	}
	k, id := q.identify(r)
	asWritten := r.Object
	if r.Was == nil {
		var err error
		if asWritten, err = q.completed(ctx, asWritten, t.limits); err != nil {
			return err
		}
	}
	class := classOf(asWritten)
	used, ofClass, own := q.ledger.without(r.Tenant.Key, id, class)
	if pod, ok := asWritten.(*corev1.Pod); ok && r.Was == nil {
		missing := append(unsaid(t.limits.hard, &pod.Spec), unsaid(t.limits.byClass[class], &pod.Spec)...)
		if len(missing) > 0 {
			return plugins.Reject("each container must say how much it needs of what is limited: %s", strings.Join(missing, ", "))
		}
	}
	asked := k.usageOf(asWritten, time.Now())
	too := excess(t.limits.hard, used, own.used, asked, "")
	too = append(too, excess(t.limits.byClass[class], ofClass, own.used, asked, " of priority class "+class)...)
	if len(too) > 0 {
		return plugins.Reject("%s", strings.Join(too, "; "))
	}
	return nil
}

// Settled charges the tenant for what was written, or may have been.
func (q *Quota) Settled(r plugins.Request, err error) {
	if err != nil && !plugins.Undecided(err) {
		return
	}
	k, id := q.identify(r)
	c := chargeOf(k, r.Object, time.Now())
	if err != nil {
		// Whatever the cache shows of it will be newer than that.
		c.uid, c.version = "", ""
	}
	q.ledger.assume(r.Tenant.Key, id, c, time.Now())
	q.changed.put(r.Tenant.Key)
}

// Usage is what a tenant has beside the object of a request, and what it may have. What it has none of is there with 0, but for classes
// and devices that it never had and that are not limited. It is for other validators, which are asked while the tenant is locked.
func (q *Quota) Usage(r plugins.Request) (used, hard corev1.ResourceList, err error) {
	if !q.isCounted() {
		return nil, nil, errors.New("what tenants have is not counted: the validator quota is not asked, or not before this one")
	}
	t, _ := q.tenant(r.Tenant.Key)
	if t.err != nil {
		return nil, nil, t.err
	}
	_, id := q.identify(r)
	has, _, _ := q.ledger.without(r.Tenant.Key, id, "")
	used = only(corev1.ResourceList{}, t.limits.hard)
	for _, name := range plain() {
		used[name] = resource.Quantity{}
	}
	maps.Copy(used, has)
	return used, t.limits.hard, nil
}

func (q *Quota) identify(r plugins.Request) (kind, object) {
	k := q.kinds[r.Kind.GroupKind()]
	return k, object{k.count, client.ObjectKeyFromObject(r.Object)}
}

func (q *Quota) isCounted() bool {
	select {
	case <-q.counted:
		return true
	default:
		return false
	}
}

func (q *Quota) tenant(key string) (tenant, bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	t, known := q.tenants[key]
	return t, known
}
