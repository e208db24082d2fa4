package syncdown

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// removals is a gate that stays closed, and knows of one object that was
// deleted by force.
type removals struct {
	forced types.UID
}

var errMissing, errUnreferred = errors.New("missing"), errors.New("not referred to")

func (removals) AllowRemoval(context.Context, *kinds.Kind, session.Objects) error { return errMissing }
func (removals) AllowRelease(context.Context) error                               { return errUnreferred }
func (r removals) WasForced(uid types.UID) bool                                   { return uid == r.forced }

func TestAllow(t *testing.T) {
	for name, tc := range map[string]struct {
		observation observation
		onDemand    bool
		want        error
	}{
		"the tenant deletes its pod": {observation{tenant: session.Deleting, same: true, wanted: true, mirrored: true}, false, nil},
		"a kind is off":              {observation{tenant: session.Present, same: true}, false, nil},
		"nothing refers to it":       {observation{tenant: session.Present, same: true}, true, errUnreferred},
		"it is gone":                 {observation{}, false, errMissing},
		"it is another one":          {observation{tenant: session.Present, wanted: true}, false, errMissing},
	} {
		t.Run(name, func(t *testing.T) {
			k := kindstest.Rich()
			k.OnDemand = tc.onDemand
			s := &deleter{gate: removals{}}
			if err := s.allow(t.Context(), k.Erase(), session.Objects{}, tc.observation); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// shows records the status that a tenant is shown, and fails.
type shows struct {
	of  []client.Object
	err error
}

func (s *shows) show(_ context.Context, _ *kinds.Kind, _, super client.Object) error {
	s.of = append(s.of, super)
	return s.err
}

// TestTheStatusIsClearedBeforeTheCopyIsDeleted: nothing would clear it
// afterwards, since the object has no copy then.
func TestTheStatusIsClearedBeforeTheCopyIsDeleted(t *testing.T) {
	failed := errors.New("the tenant's apiserver does not answer")
	status := &shows{err: failed}
	s := &deleter{gate: removals{}, status: status} // without a guard, a delete would panic
	k, web := kindstest.Plain().Erase(), kindstest.Named("web")
	off := observation{tenant: session.Present, super: session.Present, same: true}
	if err := s.deleteSuper(t.Context(), k, session.Objects{Tenant: web, Super: web}, off); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	if len(status.of) != 1 || status.of[0].GetName() != "" {
		t.Errorf("the tenant is shown the status of %v", status.of)
	}
}
