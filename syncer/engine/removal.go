package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// aHandful is how many running pods may lose their tenant's objects without anybody seeing it, as those do that are deleted by
// force while the syncer is away.
const aHandful = 5

// allowRemoval says whether the copy of a tenant's object that is gone, or is another one now, may be removed. It may not when
// the tenant's data is lost, which looks the same: what runs must not be lost with it.
func (s *session) allowRemoval(ctx context.Context, o objects) error {
	if err := s.identities.verify(ctx, s.cluster.Verify); err != nil {
		return err
	}
	if o.tenant != nil || s.deleted.has(translate.OriginOf(o.super).UID, time.Now()) {
		return nil
	}
	return s.absences.verify(ctx, s.confirmAbsence)
}

// confirmAbsence is asked about objects that are missing in the tenant though nobody was seen to delete them. They count as
// deleted unless the tenant has no pod at all any more, while more than a handful run in the super cluster.
func (s *session) confirmAbsence(ctx context.Context) error {
	running := 0
	for k := range s.carried() {
		if k.down == nil || k.down.mirror == nil {
			continue
		}
		n, err := s.abandoned(ctx, k)
		if err != nil {
			return err
		}
		running += n
	}
	if running <= aHandful {
		return nil
	}
	return s.cluster.Emptied(running)
}

// abandoned counts the tenant's mirrored objects that are on a node, if the tenant's apiserver has none of their kind.
func (s *session) abandoned(ctx context.Context, k *kind) (int, error) {
	list := k.list.DeepCopyObject().(client.ObjectList)
	if err := s.cluster.GetAPIReader().List(ctx, list, client.Limit(1)); err != nil || meta.LenList(list) > 0 {
		return 0, err
	}
	running, now := 0, time.Now()
	err := eachObject(ctx, k.cache, k, func(obj client.Object) {
		gone := stand(obj) == deleting || s.deleted.has(translate.OriginOf(obj).UID, now)
		if k.down.mirror.node(obj) != "" && !gone {
			running++
		}
	}, client.MatchingFields{indexCluster: s.lane()})
	return running, err
}

// remembered is how long a deletion that was seen is known. One that takes longer to carry is asked about.
const remembered = 10 * time.Minute

// deletions are the UIDs of objects whose deletion was seen. The zero value is ready.
type deletions struct {
	mu    sync.Mutex
	seen  map[types.UID]time.Time
	swept time.Time
}

// add notes that an object's deletion was seen.
func (d *deletions) add(uid types.UID, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = map[types.UID]time.Time{}
	}
	if now.Sub(d.swept) > remembered {
		d.swept = now
		maps.DeleteFunc(d.seen, func(_ types.UID, at time.Time) bool { return now.Sub(at) > remembered })
	}
	d.seen[uid] = now
}

// has says whether an object's deletion was seen.
func (d *deletions) has(uid types.UID, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.seen[uid]
	return ok && now.Sub(at) <= remembered
}
