package session

import (
	"reflect"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Tenant is who a tenant is, which its VirtualCluster can change at any time.
type Tenant struct {
	identity atomic.Pointer[translate.Tenant]
}

// NewTenant returns a tenant.
func NewTenant(t translate.Tenant) *Tenant {
	s := &Tenant{}
	s.identity.Store(&t)
	return s
}

// SetIdentity stores the tenant's identity. The pointer changes only with
// something that copies depend on, which the weight is not.
func (s *Tenant) SetIdentity(t translate.Tenant) {
	same := *s.identity.Load()
	same.Weight = t.Weight
	if reflect.DeepEqual(same, t) {
		return
	}
	s.identity.Store(&t)
}

// Identity is who the tenant is, as of now.
func (s *Tenant) Identity() translate.Tenant { return *s.identity.Load() }

// IdentityVersion is a pointer to the identity, which is another one after each
// change.
func (s *Tenant) IdentityVersion() *translate.Tenant { return s.identity.Load() }

// Lane is the tenant's lane of the queue.
func (s *Tenant) Lane() string { return s.Identity().Key }

// IsOurs reports whether an object of the super cluster is a copy of this
// tenant's.
func (s *Tenant) IsOurs(super client.Object) bool {
	return translate.OriginOf(super).Cluster == s.Lane()
}
