package provider

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// waiver is how long it may take to remove what ran for another cluster.
const waiver = 10 * time.Minute

// removal is a question to the admin: whether pods that run are to be removed because their tenant's are gone, though nobody
// was seen to delete them. The zero value has not asked.
type removal struct {
	mu sync.Mutex
	// asked is how many pods it would be, confirmed how many the admin agreed to.
	asked, confirmed int
	// waived is until when nothing is asked.
	waived time.Time
}

// waive has nothing asked for a while: the admin has said that what ran for another cluster goes.
func (r *removal) waive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waived = time.Now().Add(waiver)
}

// ask says whether so many pods may be removed; if not, the question stands until confirm answers it. New is true when it did
// not stand before.
func (r *removal) ask(pods int) (isNew bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pods <= r.confirmed || time.Now().Before(r.waived) {
		return false, nil
	}
	isNew = r.asked == 0
	r.asked = max(r.asked, pods)
	return isNew, fmt.Errorf("the tenant has no pods left, and %d of its pods that nobody deleted run in the super cluster", pods)
}

// confirm takes the answer out of the annotation of a VirtualCluster.
func (r *removal) confirm(vc *tenancyv1alpha1.VirtualCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmed, _ = strconv.Atoi(vc.Annotations[names.ConfirmRemoval]) // what is no number confirms nothing
	if r.confirmed >= r.asked {
		r.asked = 0
	}
}

// unconfirmed is how many pods the question is about; 0 if none is open.
func (r *removal) unconfirmed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// unconfirmedRemoval is the problem of a tenant that is parked because of such a question.
func unconfirmedRemoval(pods int) problem {
	return problem{
		tenancyv1alpha1.ReasonRemovalUnconfirmed,
		fmt.Sprintf("The tenant's apiserver has no pods any more, while %d of its pods run in the super cluster that nobody deleted; "+
			"nothing is synced, and what runs goes on. If the tenant's data can be restored, restore it, and restart the syncer. "+
			"To have these pods removed, annotate the VirtualCluster with %s=%d, and remove the annotation afterwards",
			pods, names.ConfirmRemoval, pods),
		nil,
	}
}
