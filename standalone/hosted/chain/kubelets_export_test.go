package chain

import (
	"context"
	"net/http"
)

// HandlerOfItself returns the apiserver of a tenant for requests of the control
// plane itself.
func (c *Chain) HandlerOfItself(t *Tenant) http.Handler {
	handler := c.Handler(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, itself())))
	})
}
