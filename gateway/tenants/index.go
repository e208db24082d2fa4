package tenants

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/gateway/resolve"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Index finds tenants. Its methods can be called at the same time.
type Index struct {
	// byDefault is the VirtualCluster of callers without a tenant.
	byDefault types.NamespacedName

	mu sync.RWMutex
	// all has the tenants by their VirtualClusters.
	all map[types.NamespacedName]*Tenant
	// byKey finds them by cluster key, byAuthority by the subject key identifier
	// of their client CAs, byKeyID by the kid of their tokens, and byServerName
	// by the TLS server name of their apiserver, unless it is external.
	byKey, byAuthority, byKeyID, byServerName map[string][]*Tenant
	// holders are the VirtualClusters that have an alias, whether they have a
	// tenant yet or not. No alias has the form of a cluster key.
	holders map[string]types.NamespacedName
	// visits are the requests of members in flight, by cluster key.
	visits map[string]map[*visit]struct{}
}

var _ resolve.Index = (*Index)(nil)

// NewIndex makes an empty index.
func NewIndex(byDefault types.NamespacedName) *Index {
	return &Index{
		byDefault: byDefault, all: map[types.NamespacedName]*Tenant{},
		byKey: map[string][]*Tenant{}, byAuthority: map[string][]*Tenant{}, byKeyID: map[string][]*Tenant{}, byServerName: map[string][]*Tenant{},
		holders: map[string]types.NamespacedName{}, visits: map[string]map[*visit]struct{}{},
	}
}

// Set adds the tenant of a VirtualCluster, or replaces it. The requests of one
// that is reached in another way end.
func (i *Index) Set(of types.NamespacedName, t *Tenant) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.all[of]
	if before != nil {
		i.each(before, remove)
		if before.isLike(t) {
			t.Way.Close() // it has not been used
			t.Way = before.Way
		} else {
			before.Way.Close()
		}
	}
	i.all[of] = t
	i.each(t, add)
	i.endVisits(t.Key, t.Members)
}

// Remove removes the tenant of a VirtualCluster, and ends its requests.
func (i *Index) Remove(of types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t := i.all[of]; t != nil {
		i.each(t, remove)
		delete(i.all, of)
		t.Way.Close()
	}
}

// SetHolder sets the VirtualCluster that has an alias; nil for none.
func (i *Index) SetHolder(alias string, of *types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if of == nil {
		delete(i.holders, alias)
		return
	}
	i.holders[alias] = *of
}

// AliasesOf returns the aliases that a VirtualCluster has.
func (i *Index) AliasesOf(of types.NamespacedName) []string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var aliases []string
	for alias, holder := range i.holders {
		if holder == of {
			aliases = append(aliases, alias)
		}
	}
	return aliases
}

// byAlias returns the tenant that has an alias; nil for none.
func (i *Index) byAlias(alias string) *Tenant {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if names.MayBeClusterKey(alias) {
		return nil
	}
	if of, held := i.holders[alias]; held {
		return i.all[of]
	}
	return nil
}

// Close ends all requests.
func (i *Index) Close() {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, t := range i.all {
		t.Way.Close()
	}
}

func (i *Index) each(t *Tenant, change func(map[string][]*Tenant, string, *Tenant)) {
	change(i.byKey, t.Key, t)
	for _, authority := range t.clients {
		change(i.byAuthority, string(authority.SubjectKeyId), t)
	}
	for _, id := range t.keyIDs {
		change(i.byKeyID, id, t)
	}
	if t.access.ServerName != "" && !t.access.IsExternal() {
		change(i.byServerName, strings.ToLower(t.access.ServerName), t)
	}
}

func add(m map[string][]*Tenant, key string, t *Tenant) { m[key] = append(m[key], t) }

func remove(m map[string][]*Tenant, key string, t *Tenant) {
	if m[key] = slices.DeleteFunc(slices.Clone(m[key]), func(other *Tenant) bool { return other == t }); len(m[key]) == 0 {
		delete(m, key)
	}
}

// ByKey returns the tenant with a cluster key; nil for none.
func (i *Index) ByKey(key string) *Tenant { return i.only(i.byKey, key) }

// ByAuthority returns the tenant whose client CA has a subject key identifier;
// nil for none and for several, whose users cannot be told apart.
func (i *Index) ByAuthority(id []byte) *Tenant { return i.only(i.byAuthority, string(id)) }

// ByKeyID returns the tenant whose key signs tokens with a kid; nil for none and
// for several.
func (i *Index) ByKeyID(id string) *Tenant { return i.only(i.byKeyID, id) }

// ByServerName returns the tenant whose apiserver has a TLS server name; nil
// for none, for several, and for an external one, whose owner chooses the name.
func (i *Index) ByServerName(name string) *Tenant {
	return i.only(i.byServerName, strings.ToLower(name))
}

func (i *Index) only(m map[string][]*Tenant, key string) *Tenant {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if found := m[key]; len(found) == 1 {
		return found[0]
	}
	return nil
}

// Find implements resolve.Index.
func (i *Index) Find(name string) (resolve.Entry, bool) {
	t := i.ByKey(name)
	if t == nil {
		t = i.byAlias(name)
	}
	if t == nil || t.hidden {
		return resolve.Entry{}, false
	}
	return resolve.Entry{Key: t.Key, Opaque: t.Opaque, Down: t.Down, Members: t.Members}, true
}

// Default implements resolve.Index.
func (i *Index) Default() string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if t := i.all[i.byDefault]; t != nil {
		return t.Key
	}
	return ""
}
