package typecheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/virtualcluster/virtualcluster/gateway/convert/webhooks"
	"github.com/virtualcluster/virtualcluster/internal/lastknown"
	"github.com/virtualcluster/virtualcluster/internal/panics"
)

const (
	// resting is for how long the controller does nothing after it has checked a
	// policy, and restingTenant for how long it checks no other policy of the same
	// tenant, as multiples of the time that the check took: all checks take half of a
	// core at most, and those of one tenant a twentieth.
	resting       = 1
	restingTenant = 19
	// timeout is for each request.
	timeout = 10 * time.Second
	// maxDocument is how much of a response is read, in bytes.
	maxDocument = 16 << 20
	// fieldManager is that of upstream's controller.
	fieldManager = "validatingadmissionpolicy-status"
)

// Controller writes the status of policies. It checks one at a time, of all
// tenants in turn.
type Controller struct {
	// APIOf returns the API of a tenant; nil if that is not served.
	APIOf func(clusterKey string) http.Handler
	Log   logr.Logger

	// check checks a policy.
	check func(ctx context.Context, clusterKey, name string) error
	queue workqueue.TypedRateLimitingInterface[string]

	mu      sync.Mutex
	tenants map[string]*tenant
}

// tenant has the policies of one tenant that are to be checked, and until when they
// wait.
type tenant struct {
	pending sets.Set[string]
	rests   time.Time
}

// New makes a controller.
func New(apiOf func(clusterKey string) http.Handler, log logr.Logger) *Controller {
	c := &Controller{
		APIOf: apiOf, Log: log, tenants: map[string]*tenant{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	c.check = c.reconcile
	return c
}

// Handler returns what an informer calls that watches the shelved policies, of which
// the namespace is the cluster key.
func (c *Controller) Handler(tenantName func(superName string) string) cache.ResourceEventHandler {
	add := func(obj any) {
		policy := obj.(metav1.Object)
		c.add(policy.GetNamespace(), tenantName(policy.GetName()))
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) },
		DeleteFunc: func(obj any) {
			if policy, ok := lastknown.Of[metav1.Object](obj); ok {
				c.forget(policy.GetNamespace(), tenantName(policy.GetName()))
			}
		},
	}
}

// Served queues a tenant that is served, which it may not have been before.
func (c *Controller) Served(clusterKey string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants[clusterKey] != nil {
		c.queue.Add(clusterKey)
	}
}

// Start checks policies until ctx ends.
func (c *Controller) Start(ctx context.Context) {
	context.AfterFunc(ctx, c.queue.ShutDown)
	for {
		key, stopped := c.queue.Get()
		if stopped {
			return
		}
		took := c.turn(ctx, key)
		c.queue.Done(key)
		select {
		case <-time.After(took * resting):
		case <-ctx.Done():
			return
		}
	}
}

// errNotServed is that a tenant is not served.
var errNotServed = errors.New("the tenant is not served")

// turn checks one policy of a tenant, and returns how long it took.
func (c *Controller) turn(ctx context.Context, key string) time.Duration {
	name, after := c.next(key)
	if name == "" {
		if after > 0 {
			c.queue.AddAfter(key, after)
		}
		return 0
	}
	began := time.Now()
	err := c.check(ctx, key, name)
	took := time.Since(began)
	c.rest(key, took*restingTenant)
	switch {
	case errors.Is(err, errNotServed): // Served adds it
		c.retain(key, name)
	case err != nil && ctx.Err() == nil:
		if !apierrors.IsConflict(err) {
			c.Log.Error(err, "Check the types of a policy of a converted tenant", "tenant", key, "policy", name)
		}
		c.retain(key, name)
		c.queue.AddRateLimited(key)
	default:
		c.queue.Forget(key)
		c.queue.AddAfter(key, took*restingTenant)
	}
	return took
}

func (c *Controller) add(key, name string) {
	c.retain(key, name)
	c.queue.Add(key)
}

// retain keeps the name of a policy that is to be checked.
func (c *Controller) retain(key, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.tenants[key]
	if of == nil {
		of = &tenant{pending: sets.Set[string]{}}
		c.tenants[key] = of
	}
	of.pending.Insert(name)
}

func (c *Controller) forget(key, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.tenants[key]; of != nil {
		of.pending.Delete(name)
		c.queue.Add(key)
	}
}

func (c *Controller) rest(key string, duration time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.tenants[key]; of != nil {
		of.rests = time.Now().Add(duration)
	}
}

// next returns a policy that is to be checked, or else after how long to ask again;
// zero for never.
func (c *Controller) next(key string) (name string, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.tenants[key]
	if of == nil {
		return "", 0
	}
	if left := time.Until(of.rests); left > 0 {
		return "", left
	}
	name, ok := of.pending.PopAny()
	if !ok {
		delete(c.tenants, key)
	}
	return name, 0
}

// reconcile checks a policy that has changed since it was checked last. Another
// replica of the gateway may do the same: the first one writes.
func (c *Controller) reconcile(ctx context.Context, key, name string) error {
	api := c.APIOf(key)
	if api == nil {
		return errNotServed
	}
	client, err := kubernetes.NewForConfig(configOf(api))
	if err != nil {
		return fmt.Errorf("make a client of a tenant: %w", err)
	}
	policies := client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	policy, err := policies.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get ValidatingAdmissionPolicy %s: %w", name, err)
	case policy.Generation <= policy.Status.ObservedGeneration:
		return nil
	}
	warnings, err := checkWith(client, policy)
	if err != nil {
		return fmt.Errorf("check ValidatingAdmissionPolicy %s: %w", name, err)
	}
	// Not applied, as upstream does: what is no longer applied leaves a null, which
	// the shelf does not accept.
	policy.Status.ObservedGeneration = policy.Generation
	policy.Status.TypeChecking = &admissionregistrationv1.TypeChecking{ExpressionWarnings: warnings}
	if _, err := policies.UpdateStatus(ctx, policy, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("write the status of ValidatingAdmissionPolicy %s: %w", name, err)
	}
	return nil
}

// configOf returns the configuration of a client of which the responses end.
func configOf(api http.Handler) *rest.Config {
	config := webhooks.Itself(api)
	config.Timeout = timeout
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	return config
}

// checkWith checks a policy by the schemas of a tenant. A panic is an error: the
// expressions are the tenant's.
func checkWith(client kubernetes.Interface, policy *admissionregistrationv1.ValidatingAdmissionPolicy) (
	warnings []admissionregistrationv1.ExpressionWarning, err error,
) {
	defer panics.Recover(&err)
	documents := memory.NewMemCacheClient(client.Discovery())
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(documents)
	return check(policy, kinds, &resolver.ClientDiscoveryResolver{Discovery: documents}), nil
}
