package tenants

import (
	"context"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/members"
)

// visit is a request of a member that is in flight.
type visit struct {
	who user.Info
	end context.CancelFunc
}

// Visit returns the context of a request of a member, which ends when the user
// is no longer one; false if the user is none now. The caller calls done when
// the request has ended.
func (i *Index) Visit(ctx context.Context, key string, who user.Info) (visiting context.Context, done func(), ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := i.byKey[key]
	if len(found) != 1 || !found[0].Members.Has(who) {
		return ctx, nil, false
	}
	visiting, end := context.WithCancel(ctx)
	v := &visit{who: who, end: end}
	if i.visits[key] == nil {
		i.visits[key] = map[*visit]struct{}{}
	}
	i.visits[key][v] = struct{}{}
	return visiting, func() {
		end()
		i.mu.Lock()
		defer i.mu.Unlock()
		if delete(i.visits[key], v); len(i.visits[key]) == 0 {
			delete(i.visits, key)
		}
	}, true
}

// endVisits ends the requests to a tenant of users who are not among its members.
func (i *Index) endVisits(key string, now members.List) {
	for v := range i.visits[key] {
		if !now.Has(v.who) {
			v.end()
		}
	}
}
