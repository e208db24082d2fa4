package engine

import (
	"github.com/virtualcluster/virtualcluster/syncer/fairqueue"
	"github.com/virtualcluster/virtualcluster/syncer/queue"
	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// requestCost is how many looks at an object a request to an apiserver counts
// as: about as many as take the syncer's CPU as long. Looks alone do not tell
// what is done for a tenant: where much waits, all that happens to an object
// meanwhile leads to one.
const requestCost = 4

// charge charges a tenant for the requests that a reconcile sent.
func charge(q *fairqueue.Queue[queue.Request], r queue.Request, sent *requests.Tally) {
	q.Charge(r, requestCost*(sent.To(requests.Super)+sent.To(requests.Tenant)))
}
