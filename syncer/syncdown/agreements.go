package syncdown

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// agreements are the objects whose two sides have been compared and agreed,
// each with the versions that were compared. Only kinds of which the caches
// have metadata alone need them. The zero value is ready.
type agreements struct {
	mu    sync.Mutex
	noted map[kinds.ObjectKey]agreement
}

// agreement is what was compared: the states of both sides, and the tenant's
// identity.
type agreement struct {
	identity      *translate.Tenant
	tenant, super state
}

// comparison is the result of comparing an object with its agreement.
type comparison int

const (
	// unknown: the contents have not been compared.
	unknown comparison = iota
	// compared: they have, and nothing has changed since.
	compared
	// changed: a side has changed since.
	changed
)

// compare compares both sides of an object with their agreement.
func (a *agreements) compare(k *kinds.Kind, o session.Objects) comparison {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, ok := a.noted[kinds.ObjectKey{Kind: k.Name, Key: o.Key}]
	switch {
	case !ok || was.identity != o.Identity:
		return unknown
	case was.tenant.covers(o.Tenant) && was.super.covers(o.Super):
		return compared
	}
	return changed
}

// agree remembers that both sides agree.
func (a *agreements) agree(k *kinds.Kind, o session.Objects) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.noted == nil {
		a.noted = map[kinds.ObjectKey]agreement{}
	}
	a.noted[kinds.ObjectKey{Kind: k.Name, Key: o.Key}] = agreement{o.Identity, stateOf(o.Tenant), stateOf(o.Super)}
}

// forget drops the agreement of an object that no longer has two sides.
func (a *agreements) forget(k *kinds.Kind, key client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.noted, kinds.ObjectKey{Kind: k.Name, Key: key})
}

// state identifies a version of an object.
type state struct {
	uid             types.UID
	resourceVersion string
}

func stateOf(obj client.Object) state { return state{obj.GetUID(), obj.GetResourceVersion()} }

// covers reports whether an object is in this state or an earlier one. An
// answer may be newer than what the watch has shown; were only equal states to
// count, an apiserver that answers with a new state each time would have its
// object read and written without end.
func (s state) covers(obj client.Object) bool {
	if obj.GetUID() != s.uid {
		return false
	}
	if obj.GetResourceVersion() == s.resourceVersion {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), s.resourceVersion)
	return err == nil && order <= 0
}
