// Package admission evaluates the webhooks and policies of converted tenants, by
// the plugins of upstream's apiserver on the tenant's view of its objects. The
// super cluster calls it through webhooks of its own, so that it sees what
// controllers write, and objects as they are after patches.
package admission

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/gateway/convert/webhooks"
	"github.com/virtualcluster/virtualcluster/internal/egress"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Tenant is what admission needs of a tenant.
type Tenant struct {
	Namer naming.Namer
	// CRDs has the custom resources of all tenants.
	CRDs *resources.Index
	// Convert converts a custom resource to another version of its CRD.
	Convert func(
		ctx context.Context, clusterKey string, crd *resources.CRD, object *unstructured.Unstructured, to schema.GroupVersion,
	) (*unstructured.Unstructured, error)
	// API serves the tenant's API to the user in the context.
	API http.Handler
	// Authorize decides by the RBAC of the tenant.
	Authorize authorizer.Authorizer
	// Network is what the tenant's webhooks are reached by.
	Network egress.Network
}

// Tenants have the engines of the tenants that are served.
type Tenants struct {
	mu      sync.Mutex
	tenants map[string]*entry
	// byGroup finds cluster keys by what begins the API groups of their CRDs.
	byGroup map[string]string
}

// entry is a tenant, with its engine once that was needed.
type entry struct {
	tenant Tenant
	engine *engine
	limits *limits
}

// NewTenants makes an empty set. From then on, JSON patches copy at most 3 MiB in
// this process.
func NewTenants() *Tenants {
	limitCopies()
	return &Tenants{tenants: map[string]*entry{}, byGroup: map[string]string{}}
}

// Set adds a tenant, or replaces what is known of it.
func (t *Tenants) Set(tenant Tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := tenant.Namer.Key
	if known := t.tenants[key]; known != nil {
		known.tenant = tenant
		return
	}
	t.tenants[key] = &entry{tenant: tenant, limits: newLimits()}
	t.byGroup[names.ConvertedGroup(key)] = key
}

// Remove removes a tenant, and ends its engine.
func (t *Tenants) Remove(key string) {
	t.Stop(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tenants, key)
	delete(t.byGroup, names.ConvertedGroup(key))
}

// Stop ends the engine of a tenant, if it has one.
func (t *Tenants) Stop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.tenants[key]; known != nil && known.engine != nil {
		known.engine.stop()
		known.engine = nil
	}
}

// use returns a tenant and its engine, which it starts; false for a tenant that
// is not served.
func (t *Tenants) use(key string) (*engine, *limits, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.tenants[key]
	if known == nil {
		return nil, nil, false, nil
	}
	if known.engine == nil {
		var err error
		if known.engine, err = newEngine(known.tenant, t.apiOf(key)); err != nil {
			return nil, nil, true, err
		}
	}
	return known.engine, known.limits, true, nil
}

// apiOf returns the API of a tenant as it is known when it is used.
func (t *Tenants) apiOf(key string) http.Handler {
	return webhooks.Current(func() http.Handler { return t.API(key) })
}

// API returns the API of a tenant; nil if that is not served.
func (t *Tenants) API(key string) http.Handler {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.tenants[key]; known != nil {
		return known.tenant.API
	}
	return nil
}

// ofGroup returns the cluster key of the tenant whose CRDs have an API group of
// the super cluster.
func (t *Tenants) ofGroup(group string) string {
	head, _, _ := strings.Cut(group, ".")
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byGroup[head+"."]
}
