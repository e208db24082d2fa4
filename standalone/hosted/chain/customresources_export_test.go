package chain

import "context"

// ServesCustomResources reports whether a tenant has a server of custom
// resources.
func ServesCustomResources(t *Tenant) bool {
	t.extensions.mu.Lock()
	defer t.extensions.mu.Unlock()
	return t.extensions.server != nil
}

// EndUnused ends the server of custom resources if there are no definitions.
func EndUnused(ctx context.Context, t *Tenant) {
	t.extensions.mu.Lock()
	server := t.extensions.server
	t.extensions.mu.Unlock()
	if server != nil {
		t.extensions.endUnused(ctx, server)
	}
}

// KeepsDocuments reports whether OpenAPI documents of a tenant are in memory.
func KeepsDocuments(t *Tenant) bool {
	documents := &t.extensions.server.documents
	documents.mu.Lock()
	defer documents.mu.Unlock()
	return documents.current != nil
}

// DropDocuments drops the OpenAPI documents of a tenant, as after some time.
func DropDocuments(t *Tenant) { t.extensions.server.documents.drop() }
