package stored

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
)

const (
	// reportInterval is how far the condition and the metrics may lag behind.
	reportInterval = 2 * time.Second
	// calm is the time without a rejection after which a limit is no longer
	// reached, so that clients that retry cause one transition.
	calm = time.Minute

	reportOwner = client.FieldOwner("vc-syncer-within-limits")
)

// Reporter reports what converted tenants store: in the condition WithinLimits of
// their VirtualClusters, and in metrics.
type Reporter struct {
	// Client reads VirtualClusters from a cache.
	Client client.Client
	// Counter counts.
	Counter *Counter
	// Most is how much a tenant may store that has no limits of its own.
	Most Amount
	// Active reports whether this replica limits: the others do not know of
	// rejections.
	Active func() bool
	// Metrics export the usage.
	Metrics *Metrics
}

// report is what a tenant stores and may store.
type report struct {
	stored, most Amount
	// rejected: a write was rejected a moment ago.
	rejected bool
}

// Start reports until ctx is done.
func (r *Reporter) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, r.report, reportInterval)
	return nil
}

func (r *Reporter) report(ctx context.Context) {
	if !r.Active() || r.Counter.counts() != nil {
		r.Metrics.show(nil)
		return
	}
	var list tenancyv1alpha1.VirtualClusterList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list VirtualClusters to report what converted tenants store")
		return
	}
	all := map[string]report{}
	for i := range list.Items {
		vc := &list.Items[i]
		if vc.Spec.Provisioner != tenancyv1alpha1.ProvisionerConverted || vc.Status.ClusterNamespace == "" || !vc.DeletionTimestamp.IsZero() {
			continue
		}
		of := r.Counter.reportOf(vc.Status.ClusterNamespace, LimitsOf(vc, r.Most))
		all[vc.Status.ClusterNamespace] = of
		if err := r.write(ctx, vc, of); err != nil {
			log.FromContext(ctx).Error(err, "Cannot report what a converted tenant stores", "tenant", client.ObjectKeyFromObject(vc))
		}
	}
	r.Metrics.show(all)
}

// write writes the condition if it differs.
func (r *Reporter) write(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, of report) error {
	want, differs := vcstatus.Merge(vc, map[string]*metav1.Condition{tenancyv1alpha1.ConditionWithinLimits: of.condition(vc)})
	if !differs {
		return nil
	}
	return vcstatus.ApplyConditions(ctx, r.Client, vc, reportOwner, want...)
}

// condition returns the condition of a VirtualCluster. The message stays while the
// limit is reached.
func (r report) condition(vc *tenancyv1alpha1.VirtualCluster) *metav1.Condition {
	if !r.rejected && !r.isFull() {
		return &metav1.Condition{
			Type: tenancyv1alpha1.ConditionWithinLimits, Status: metav1.ConditionTrue, ObservedGeneration: vc.Generation,
			Reason: tenancyv1alpha1.ReasonWithinLimits, Message: "The tenant is within the limits of what it stores",
		}
	}
	before := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionWithinLimits)
	if before != nil && before.Status == metav1.ConditionFalse && before.ObservedGeneration == vc.Generation {
		return before
	}
	return &metav1.Condition{
		Type: tenancyv1alpha1.ConditionWithinLimits, Status: metav1.ConditionFalse, ObservedGeneration: vc.Generation,
		Reason: tenancyv1alpha1.ReasonStorageLimitReached,
		Message: fmt.Sprintf("%s of %s and %d of %s objects are stored: writes that need more are rejected",
			text(r.stored.Bytes), limitOr(r.most.Bytes, text(r.most.Bytes)),
			r.stored.Objects, limitOr(r.most.Objects, strconv.FormatInt(r.most.Objects, 10))),
	}
}

// isFull reports whether the tenant stores as much as it may, or more since its
// limit was lowered.
func (r report) isFull() bool {
	return r.most.Bytes > 0 && r.stored.Bytes >= r.most.Bytes || r.most.Objects > 0 && r.stored.Objects >= r.most.Objects
}

// limitOr returns a limit in words; what is not positive is none.
func limitOr(limit int64, words string) string {
	if limit > 0 {
		return words
	}
	return "any number of"
}
