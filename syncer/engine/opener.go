package engine

import (
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// opener opens the watches of a tenant.
type opener struct {
	*session.Session
	*shared

	events *tenantEvents
}

// begin opens the tenant's watches, waits until all is known, and enqueues what
// the super cluster has of the tenant, by which is found what the tenant
// deleted while it was not engaged.
func (s *opener) begin() error {
	if err := s.open(); err != nil {
		return err
	}
	// The super cluster's caches fill at the same time.
	select {
	case <-s.watching:
	case <-s.Ctx.Done():
		return s.Ctx.Err()
	}
	if err := catchUp(s.Session, s.timeout); err != nil {
		return err
	}
	return enqueueSuper(s.Session)
}

// open opens the tenant's watches, in its turn, and waits until its objects are
// known.
func (s *opener) open() error {
	giveBack, err := s.beginning.take(s.Ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	var known []toolscache.DoneChecker
	for k := range s.SyncedKinds() {
		if k.Up != nil && k.Up.Class {
			continue
		}
		registration, err := s.events.watch(k)
		if err != nil {
			return err
		}
		known = append(known, registration.HasSyncedChecker())
	}
	used, err := s.watchUsed()
	if err != nil {
		return err
	}
	if !toolscache.WaitFor(s.Ctx, "", append(known, used...)...) {
		return s.Ctx.Err()
	}
	return nil
}

// watchUsed watches the kinds of classes that the tenant was shown earlier, and
// may have to be deleted.
func (s *opener) watchUsed() ([]toolscache.DoneChecker, error) {
	var known []toolscache.DoneChecker
	for _, k := range usedClasses(s.Session, s.timeout) {
		registration, err := s.events.watch(k)
		if err != nil {
			return nil, err
		}
		known = append(known, registration.HasSyncedChecker())
	}
	return known, nil
}
