package syncdown

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// gracePeriods are those of a tenant's mirrored objects.
type gracePeriods struct {
	*session.Tenant

	forced forcedDeletions
}

// forcedDeletions are the deletions without a grace period.
type forcedDeletions interface {
	// WasForced reports whether an object was deleted without a grace period.
	WasForced(uid types.UID) bool
}

// of returns the grace period in seconds that the tenant gives a copy, within
// its policy; nil if it gives none. The copy of an object that was deleted by
// force has none left, since the name may be used again.
func (s *gracePeriods) of(m *kinds.Mirror[client.Object], o session.Objects) *int64 {
	uid := translate.OriginOf(o.Super).UID
	switch {
	case o.Tenant != nil && o.Tenant.GetUID() == uid:
		return s.Identity().GracePeriod(m.GracePeriodSeconds(o.Tenant))
	case s.forced.WasForced(uid):
		return new(int64(0))
	}
	return nil
}

// shortened reports whether a copy is being deleted with a longer grace period
// than the tenant gives it.
func (s *gracePeriods) shortened(m *kinds.Mirror[client.Object], o session.Objects) bool {
	if session.Stand(o.Super) != session.Deleting {
		return false
	}
	wanted, given := s.of(m, o), m.GracePeriodSeconds(o.Super)
	return wanted != nil && given != nil && *wanted < *given
}
