package provider

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// waiver is the time limit for deleting the pods of a replaced cluster.
const waiver = 10 * time.Minute

// removal asks the admin to confirm that running pods should be deleted because
// the tenant's pods are missing without an observed deletion. The zero value
// has not asked.
type removal struct {
	mu sync.Mutex
	// asked is the number of pods that would be deleted, confirmed the number
	// that the admin confirmed.
	asked, confirmed int
	// waived is the time until which no confirmation is needed.
	waived time.Time
}

// waive suspends confirmations for a while: the admin has confirmed that the
// pods of the replaced cluster are deleted.
func (r *removal) waive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waived = time.Now().Add(waiver)
}

// ask returns an error unless that many pods may be deleted; then the question
// is open until confirm answers it. isNew is true if it was not open before.
func (r *removal) ask(pods int) (isNew bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pods <= r.confirmed || time.Now().Before(r.waived) {
		return false, nil
	}
	isNew = r.asked == 0
	r.asked = max(r.asked, pods)
	return isNew, fmt.Errorf("the tenant has no pods left, but %d of its pods still run in the super cluster, without an observed deletion",
		pods)
}

// confirm reads the answer from the annotation of a VirtualCluster.
func (r *removal) confirm(vc *tenancyv1alpha1.VirtualCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmed, _ = strconv.Atoi(vc.Annotations[names.ConfirmRemoval]) // an invalid number confirms nothing
	if r.confirmed >= r.asked {
		r.asked = 0
	}
}

// unconfirmed returns the number of pods that the open question is about; 0 if
// none is open.
func (r *removal) unconfirmed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// unconfirmedRemoval returns the problem of a tenant that is parked because of
// an open question.
func unconfirmedRemoval(pods int) problem {
	return problem{
		tenancyv1alpha1.ReasonRemovalUnconfirmed,
		fmt.Sprintf("The tenant's apiserver has no pods any more, but %d of its pods still run in the super cluster, without an "+
			"observed deletion; nothing is synced, and running pods keep running. "+
			"If the tenant's data can be restored, restore it, and restart the syncer. "+
			"To delete these pods, annotate the VirtualCluster with %s=%d, and remove the annotation afterwards",
			pods, names.ConfirmRemoval, pods),
		nil,
	}
}
