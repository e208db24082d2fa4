package resolve

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/members"
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
	// SuperUser is the user of the super cluster who sends the request; nil for
	// others.
	SuperUser user.Info
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
	// Members are users of the super cluster who reach the tenant.
	Members members.List
}

// Index finds tenants.
type Index interface {
	// Find returns a tenant by its cluster key or alias, and the super cluster if
	// its users reach it.
	Find(name string) (Entry, bool)
	// Default returns the cluster key of the tenant of callers that have none;
	// empty without one.
	Default() string
}

// Target is where a request is forwarded to.
type Target struct {
	// Key is the cluster key of the tenant, System or Projects.
	Key string
	// Member is the user of the super cluster who reaches the tenant as a member;
	// nil for a caller with credentials of the tenant.
	Member user.Info
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
	entry, found := index.Find(name)
	switch {
	case name == Projects && caller.SuperUser != nil:
		return Target{Key: Projects}, nil
	case name == System && caller.Of == System && found:
		return Target{Key: System}, nil
	case name == Projects || name == System || !found || !admits(entry, caller, index.Default()):
		return Target{}, Unavailable(asked.Tenant)
	}
	if entry.Down {
		return Target{}, &Refusal{
			Code: http.StatusServiceUnavailable, RetryAfter: downRetry,
			Message: fmt.Sprintf("the control plane of tenant %q does not run", name),
		}
	}
	target := Target{Key: entry.Key}
	if caller.Of != entry.Key && entry.Members.Has(caller.SuperUser) {
		target.Member = caller.SuperUser
	}
	return target, nil
}

// admits reports whether a caller learns that a tenant exists.
func admits(entry Entry, caller Identity, byDefault string) bool {
	if caller.Of != "" {
		return caller.Of == entry.Key || entry.Members.Has(caller.SuperUser)
	}
	return entry.Key == byDefault || entry.Opaque && caller.Credentials
}

// Unavailable refuses a tenant that does not exist, or that the caller may not
// know of.
func Unavailable(name string) *Refusal {
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
