package chain

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
)

// newEviction returns the registry of a tenant's evictions. Upstream's reads
// and updates PodDisruptionBudgets by a client, and without the context of the
// request.
func (c *Chain) newEviction(t *Tenant) (*podstore.EvictionREST, error) {
	own, err := podstore.NewStorage(c.stores, nil, nil, t.client.PolicyV1(), authorizers{c})
	if err != nil {
		return nil, fmt.Errorf("create the registry of evictions: %w", err)
	}
	return own.Eviction, nil
}

// evictions evicts each pod by the PodDisruptionBudgets of its tenant.
type evictions struct {
	*podstore.EvictionREST

	chain *Chain
}

// Create implements rest.NamedCreater.
func (e evictions) Create(
	ctx context.Context, name string, eviction runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	t, err := e.chain.tenant(ctx)
	if err != nil {
		return nil, err
	}
	own, err := t.eviction.get()
	if err != nil {
		return nil, err
	}
	return own.Create(ctx, name, eviction, validate, options)
}
