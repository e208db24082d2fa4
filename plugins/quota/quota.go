// Package quota is the validator of spec.quota: it limits the resources of a
// tenant in the super cluster, over all its namespaces. It counts as
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// ID is the ID of the plugin.
const ID = "quota"

// Quota is the validator.
type Quota struct {
	env    plugins.Environment
	kinds  map[schema.GroupKind]kind
	ledger *ledger
	locks  plugins.TenantLocks

	// counted is closed when the ledger holds the usage of all tenants, and
	// their limits are known.
	counted chan struct{}
	// loosened are the tenants whose usage may have decreased or whose limits
	// have changed; changed are those whose status may differ.
	loosened, changed *notices
	metrics           *metrics

	mu      sync.RWMutex
	tenants map[string]tenant

	// volumes serializes reading a volume and charging for it. Until
	// volumesKnown is set, claims may be missing from the cache.
	volumes      sync.Mutex
	volumesKnown atomic.Bool
}

// tenant is a tenant with its limits.
type tenant struct {
	vc     client.ObjectKey
	limits limits
	err    error // why the limits are invalid
}

// New returns a quota that counts nothing until its plugin is initialized.
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

// Registration returns the plugin, which can be initialized once.
func (q *Quota) Registration() plugins.Registration {
	return plugins.Registration{ID: ID, InitFn: func(env plugins.Environment) (plugins.Validator, error) { return q, q.init(env) }}
}

func (q *Quota) init(env plugins.Environment) error {
	q.env = env
	for _, k := range env.Kinds {
		q.kinds[k.GroupKind()] = countedKind(k)
	}
	var err error
	q.metrics, err = newMetrics(env.Registerer)
	return err
}

// Name implements plugins.Validator.
func (*Quota) Name() string { return ID }

// Kinds returns the counted kinds.
func (q *Quota) Kinds() []schema.GroupKind {
	all := make([]schema.GroupKind, 0, len(q.kinds))
	for kind := range q.kinds {
		all = append(all, kind)
	}
	return all
}

// Locker returns the lock of a tenant; nil if it has no VirtualCluster.
func (q *Quota) Locker(tenant string) plugins.Locker {
	if q.isCounted() {
		if _, known := q.tenant(tenant); !known {
			return nil
		}
	}
	return q.locks.Of(tenant)
}

// Validate rejects a copy that would exceed a limit of the tenant.
func (q *Quota) Validate(ctx context.Context, r plugins.Request) error {
	select {
	case <-q.counted:
	case <-ctx.Done():
		return fmt.Errorf("usage of tenants is not counted yet: %w", context.Cause(ctx))
	}
	t, _ := q.tenant(r.Tenant.Key)
	if t.err != nil || t.limits.none() {
		return t.err
	}
	k, id := q.identify(r)
	asWritten := r.Object
	if r.Was == nil {
		var err error
		if asWritten, err = q.withAdmission(ctx, asWritten, t.limits); err != nil {
			return err
		}
	}
	class := classOf(asWritten)
	used, ofClass, own := q.ledger.without(r.Tenant.Key, id, r.Object.GetUID(), class)
	if pod, ok := asWritten.(*corev1.Pod); ok && r.Was == nil {
		missing := append(undeclared(t.limits.hard, &pod.Spec), undeclared(t.limits.byClass[class], &pod.Spec)...)
		if len(missing) > 0 {
			return plugins.Reject("each container must declare the limited resources: %s", strings.Join(missing, ", "))
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

// Settled charges the tenant for a copy that was written, or may be.
func (q *Quota) Settled(r plugins.Request, err error) {
	if err != nil && !plugins.Undecided(err) {
		return
	}
	k, id := q.identify(r)
	c := chargeOf(k, r.Object, time.Now())
	if errors.Is(err, plugins.ErrAwaited) {
		c.version = ""
		if r.Was != nil {
			c.version = r.Was.GetResourceVersion()
		}
		q.ledger.reserve(r.Tenant.Key, id, c, time.Now())
		q.changed.put(r.Tenant.Key)
		return
	}
	if err != nil {
		// Without a version, any state in the cache is newer.
		c.uid, c.version = "", ""
	}
	q.ledger.assume(r.Tenant.Key, id, c, time.Now())
	q.changed.put(r.Tenant.Key)
}

// Usage returns the usage of a tenant without the object of a request, and its
// limits. Unused resources are included with 0, except those of classes and
// devices that the tenant neither used nor has limits for. It is for other
// validators, which are called while the tenant is locked.
func (q *Quota) Usage(r plugins.Request) (used, hard corev1.ResourceList, err error) {
	if !q.isCounted() {
		return nil, nil, errors.New("usage of tenants is not counted: the validator quota is not enabled, or not called before this one")
	}
	t, _ := q.tenant(r.Tenant.Key)
	if t.err != nil {
		return nil, nil, t.err
	}
	_, id := q.identify(r)
	has, _, _ := q.ledger.without(r.Tenant.Key, id, r.Object.GetUID(), "")
	used = only(corev1.ResourceList{}, t.limits.hard)
	for _, name := range q.plain() {
		used[name] = resource.Quantity{}
	}
	maps.Copy(used, has)
	return used, t.limits.hard, nil
}

func (q *Quota) identify(r plugins.Request) (kind, object) {
	k := q.kinds[r.Kind.GroupKind()]
	return k, object{count: k.count, key: client.ObjectKeyFromObject(r.Object)}
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
