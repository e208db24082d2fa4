package conversion

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/gateway/convert/webhooks"
	"github.com/virtualcluster/virtualcluster/internal/egress"
)

// Tenant is what conversion needs of a tenant.
type Tenant struct {
	Namer naming.Namer
	// API serves the tenant's API to the user in the context.
	API http.Handler
	// Network is what the tenant's webhooks are reached by.
	Network egress.Network
}

// Conversions of a tenant: how many at a time, how long one more waits, and how much
// time of the super cluster's workers they take. A webhook that converts in
// milliseconds never uses it up.
const (
	conversions = 16
	queueing    = 2 * time.Second
	share       = 4
	burst       = 2 * time.Minute
)

// Tenants have what calls the webhooks of the tenants that are served.
type Tenants struct {
	mu      sync.Mutex
	tenants map[string]*entry
}

// entry is a tenant, with what calls its webhooks once that was needed.
type entry struct {
	tenant  Tenant
	budget  *webhooks.Budget
	factory *conversion.CRConverterFactory
}

// NewTenants makes an empty set.
func NewTenants() *Tenants { return &Tenants{tenants: map[string]*entry{}} }

// Set adds a tenant, or replaces what is known of it.
func (t *Tenants) Set(tenant Tenant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.tenants[tenant.Namer.Key]; known != nil {
		known.tenant = tenant
		return
	}
	t.tenants[tenant.Namer.Key] = &entry{tenant: tenant, budget: webhooks.NewBudget(conversions, share, burst)}
}

// Remove removes a tenant.
func (t *Tenants) Remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tenants, key)
}

// use returns a tenant with what calls its webhooks; nil for one that is not
// served.
func (t *Tenants) use(key string) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.tenants[key]
	if known == nil {
		return nil, nil
	}
	if known.factory == nil {
		client, err := kubernetes.NewForConfig(webhooks.Itself(t.apiOf(key)))
		if err != nil {
			return nil, fmt.Errorf("make a client of a tenant: %w", err)
		}
		known.factory, err = conversion.NewCRConverterFactory(webhooks.Services{Tenant: client}, webhooks.Clients(known.tenant.Network))
		if err != nil {
			return nil, fmt.Errorf("make what calls the conversion webhooks of a tenant: %w", err)
		}
	}
	copied := *known
	return &copied, nil
}

// Convert returns an object of a tenant in another version of its CRD. The object
// and the CRD have the tenant's names.
func (t *Tenants) Convert(
	ctx context.Context, clusterKey string, crd *resources.CRD, object *unstructured.Unstructured, to schema.GroupVersion,
) (*unstructured.Unstructured, error) {
	if ClientOf(crd) == nil { // the versions differ in nothing else
		converted := object.DeepCopy()
		converted.SetGroupVersionKind(to.WithKind(object.GetKind()))
		return converted, nil
	}
	tenant, err := t.use(clusterKey)
	if err != nil {
		return nil, err
	}
	if tenant == nil {
		return nil, errNotServed
	}
	converted, err := tenant.call(ctx, crd, []unstructured.Unstructured{*object}, to)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s to %s: %w", crd.Spec.Names.Kind, object.GetName(), to, err)
	}
	return &converted[0], nil
}

// apiOf returns the API of a tenant as it is known when it is used.
func (t *Tenants) apiOf(key string) http.Handler {
	return webhooks.Current(func() http.Handler {
		t.mu.Lock()
		defer t.mu.Unlock()
		if known := t.tenants[key]; known != nil {
			return known.tenant.API
		}
		return nil
	})
}
