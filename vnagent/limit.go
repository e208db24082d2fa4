package vnagent

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// limit bounds how many streams each tenant has at a time, so that none takes
// the agent's memory and connections from the others.
type limit struct {
	most int

	mu   sync.Mutex
	have map[types.UID]int
}

func newLimit(most int) *limit { return &limit{most: most, have: map[types.UID]int{}} }

// take counts a stream of a tenant, unless that has too many. The function that
// it returns releases the stream.
func (l *limit) take(tenant types.UID) (giveBack func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.have[tenant] >= l.most {
		return nil, false
	}
	l.have[tenant]++
	return func() { l.giveBack(tenant) }, true
}

func (l *limit) giveBack(tenant types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.have[tenant]--; l.have[tenant] == 0 {
		delete(l.have, tenant)
	}
}
