package syncup

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// A tenant's objects of a kind that it chooses from are watched from when it is first shown one, and not before: few of these kinds
// are used, and together they would be a third of all watches of a tenant. What a tenant makes of its own is nobody's concern.

// awaken watches the tenant's objects of a kind, if they are not.
func (s *Syncer) awaken(k *kinds.Kind) error {
	s.awakening.Lock()
	defer s.awakening.Unlock()
	if !s.Asleep(k) {
		return nil
	}
	return s.open(k)
}

// readAwake reads both sides from the caches, that of the tenant too if there is something to show.
func (s *Syncer) readAwake(ctx context.Context, k *kinds.Kind, key client.ObjectKey) (objects, error) {
	o, err := s.readUp(ctx, k, key)
	if err != nil || o.shown == nil || !s.Asleep(k) {
		return o, err
	}
	if err := s.awaken(k); err != nil {
		return o, err
	}
	return s.readUp(ctx, k, key)
}
