package session

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// StandingKinds are the kinds of standing custom resources that are watched in
// the super cluster. The zero value has none, and does not know whether that is
// all.
type StandingKinds struct {
	Kinds
	complete atomic.Bool
}

// Complete records that all standing resources of the super cluster are watched.
func (s *StandingKinds) Complete() { s.complete.Store(true) }

// errIncomplete is why it is not known which objects have a claim.
var errIncomplete = errors.New("not all kinds with claims are known")

// Claimants returns all kinds with claims. It is an error if not all of their
// objects are known yet.
func (e *SuperCluster) Claimants() ([]*kinds.Kind, error) {
	if !e.Standing.complete.Load() {
		return nil, errIncomplete
	}
	var claimants []*kinds.Kind
	for _, k := range e.Builtin {
		if k.Down != nil && k.Down.Claims != nil {
			claimants = append(claimants, k)
		}
	}
	for k := range e.Standing.SyncedKinds() {
		switch {
		case k.Down == nil || k.Down.Claims == nil:
		case !e.CacheOf(k).Synced(k):
			return nil, fmt.Errorf("the super cluster's %s objects are not known", k.Name)
		default:
			claimants = append(claimants, k)
		}
	}
	return claimants, nil
}
