package engine

import (
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// requestCost is how many looks at an object a request to an apiserver counts as: about as many as take the syncer's CPU as long.
// Looks alone do not tell what is done for a tenant: where much waits, all that happens to an object meanwhile leads to one.
const requestCost = 4

// charge has a tenant pay for the requests that were sent in a look at one of its objects.
func (e *Engine) charge(r queue.Request, sent *requests.Tally) {
	e.Queue.Charge(r, requestCost*(sent.To(requests.Super)+sent.To(requests.Tenant)))
}
