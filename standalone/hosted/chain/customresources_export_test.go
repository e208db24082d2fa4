package chain

import "context"

// ServesCustomResources reports whether a tenant has a server of custom
// resources.
func ServesCustomResources(t *Tenant) bool {
	t.extensions.mu.Lock()
	defer t.extensions.mu.Unlock()
	return t.extensions.part != nil
}

// EndUnused ends the server of custom resources if there are no definitions.
func EndUnused(ctx context.Context, t *Tenant) {
	t.extensions.mu.Lock()
	server := t.extensions.part
	t.extensions.mu.Unlock()
	if server != nil {
		t.extensions.endUnused(ctx, server)
	}
}

// KeepsDocuments reports whether OpenAPI documents of a tenant are in memory.
func KeepsDocuments(t *Tenant) bool {
	t.documents.mu.Lock()
	defer t.documents.mu.Unlock()
	return t.documents.current != nil
}

// DropDocuments drops the OpenAPI documents of a tenant, as after some time.
func DropDocuments(t *Tenant) { t.documents.drop() }

// Aggregates reports whether a tenant has an aggregator.
func Aggregates(t *Tenant) bool {
	t.aggregation.mu.Lock()
	defer t.aggregation.mu.Unlock()
	return t.aggregation.part != nil
}

// ExpireAggregator ends the aggregator, as after some time without requests.
func ExpireAggregator(t *Tenant) {
	t.aggregation.mu.Lock()
	part := t.aggregation.part
	t.aggregation.mu.Unlock()
	if part != nil {
		t.aggregation.expire(part)
	}
}
