package resolve

import (
	"fmt"
	"net/http"
	"time"
)

// downRetry is when to repeat a request to a control plane that is down.
const downRetry = 5 * time.Second

// Identity is what the gateway knows of a caller.
type Identity struct {
	// Of is the cluster key of the tenant whose CA or key has signed the
	// credentials, or System; empty if the gateway does not know it.
	Of string
	// Credentials reports whether the caller has any.
	Credentials bool
}

// Entry is what an index knows of a tenant.
type Entry struct {
	// Key is the cluster key.
	Key string
	// Opaque: the tenant's apiserver accepts credentials that the gateway does
	// not recognize.
	Opaque bool
	// Down: the control plane does not run, and no request wakes it.
	Down bool
}

// Index finds tenants.
type Index interface {
	// Find returns a tenant by its cluster key or alias.
	Find(name string) (Entry, bool)
	// Default returns the cluster key of the tenant of callers that have none;
	// empty without one.
	Default() string
}

// Target is where a request is forwarded to.
type Target struct {
	// Key is the cluster key of the tenant, or System.
	Key string
}

// Resolve returns the tenant of a request. The explicit forms win over the
// identity of the caller. Unknown tenants, and those of which the caller has no
// credentials, get the same refusal.
func Resolve(asked Asked, caller Identity, index Index) (Target, *Refusal) {
	name := asked.Tenant
	if name == "" {
		name = caller.Of
	}
	if name == "" {
		name = index.Default()
	}
	if name == System {
		if caller.Of == System {
			return Target{Key: System}, nil
		}
		return Target{}, unavailable(asked.Tenant)
	}
	entry, found := index.Find(name)
	if !found || !admits(entry, caller, index.Default()) {
		return Target{}, unavailable(asked.Tenant)
	}
	if entry.Down {
		return Target{}, &Refusal{
			Code: http.StatusServiceUnavailable, RetryAfter: downRetry,
			Message: fmt.Sprintf("the control plane of tenant %q does not run", name),
		}
	}
	return Target{Key: entry.Key}, nil
}

// admits reports whether a caller learns that a tenant exists.
func admits(entry Entry, caller Identity, byDefault string) bool {
	if caller.Of != "" {
		return caller.Of == entry.Key
	}
	return entry.Key == byDefault || entry.Opaque && caller.Credentials
}

// unavailable refuses a tenant that does not exist, or that the caller may not
// know of.
func unavailable(name string) *Refusal {
	if name == "" {
		return &Refusal{
			Code:    http.StatusForbidden,
			Message: "the credentials belong to no tenant: name the tenant, or use credentials of one",
		}
	}
	return &Refusal{
		Code:    http.StatusForbidden,
		Message: fmt.Sprintf("there is no tenant %q for these credentials: check the name, and whether the credentials are of this tenant", name),
	}
}
