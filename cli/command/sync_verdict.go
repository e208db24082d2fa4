package command

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// Outcomes of an object. Those that an event of the syncer reports are the
// syncer's own.
const (
	outcomeSynced    = "Synced"
	outcomeNotCopied = "NotCopied"
	outcomeForeign   = "NameTaken"
	outcomeWaiting   = "Waiting"
	outcomeDeleting  = "Deleting"
	outcomeInDoubt   = "InDoubt"
	outcomeRejected  = "Rejected"
	outcomeBlockedOn = "BlockedOn"
	outcomeFailed    = "Failed"
	outcomeNotSynced = "TenantNotSynced"
)

// syncer is the source of the events that tell a tenant why an object is not
// synced.
const syncer = "vc-syncer"

// outcomeOf returns the outcome that a reason of the syncer's events reports.
func outcomeOf(reason string) (string, bool) {
	outcome, known := map[string]string{
		"SyncBlocked": outcomeBlockedOn, "SyncRejected": outcomeRejected, "SyncWaiting": outcomeWaiting,
		"SyncInDoubt": outcomeInDoubt, "SyncFailed": outcomeFailed,
		"QuotaExceeded": outcomeRejected, "RuleViolated": outcomeRejected, "LimitExceeded": outcomeRejected,
	}[reason]
	return outcome, known
}

// sides are a tenant's object and the object of the super cluster with its
// translated name. One that does not exist is nil.
type sides struct {
	cluster string
	// tenant and super are the objects.
	tenant, super *unstructured.Unstructured
	// events are those of the syncer about the tenant's object, the newest at
	// the end.
	events []event
}

// verdict is whether an object is synced, and why not.
type verdict struct {
	Outcome string `json:"outcome"`
	Message string `json:"message,omitempty"`
}

// synced reports whether nothing is left to do.
func (v verdict) synced() bool { return v.Outcome == outcomeSynced }

// verdict compares both sides.
func (s sides) verdict(vc *tenancyv1alpha1.VirtualCluster) verdict {
	if s.tenant != nil && s.tenant.GetLabels()[names.FromSuper] != "" {
		return s.syncedUp()
	}
	found := s.syncedDown()
	syncing := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing)
	if !found.synced() && syncing != nil && syncing.Status != metav1.ConditionTrue {
		return verdict{outcomeNotSynced, "the tenant is not synced: " + describeCondition(*syncing)}
	}
	return found
}

// syncedUp is the verdict of an object that belongs to the super cluster.
func (s sides) syncedUp() verdict {
	if s.super == nil {
		return verdict{outcomeDeleting, "the super cluster does not have the object any more; it will be deleted in the tenant"}
	}
	return verdict{outcomeSynced, "the object belongs to the super cluster"}
}

// syncedDown is the verdict of an object that belongs to the tenant.
func (s sides) syncedDown() verdict {
	reported, written := s.reported()
	switch {
	case s.super == nil && reported.Outcome != "":
		return reported
	case s.super == nil:
		return verdict{outcomeNotCopied, "it has no copy, and no event reports a reason: its kind is not synced, " +
			"or only while another object refers to it (spec.sync.kinds), or it was created a moment ago"}
	case translate.OriginOf(s.super).Cluster != s.cluster:
		return verdict{outcomeForeign, "the object of that name in the super cluster is not a copy of an object of this tenant"}
	case s.tenant == nil:
		return verdict{outcomeInDoubt, "the tenant does not have the object, and its copy is not deleted yet"}
	case translate.OriginOf(s.super).UID != s.tenant.GetUID():
		return verdict{outcomeWaiting, "the copy is that of a previous object of the same name, which has to be deleted first"}
	case s.tenant.GetDeletionTimestamp() != nil || s.super.GetDeletionTimestamp() != nil:
		return verdict{outcomeDeleting, "the deletion is under way"}
	case written:
		return reported
	}
	return verdict{Outcome: outcomeSynced}
}

// reported returns the outcome of the newest event that reports one, and
// whether the copy was not written since.
func (s sides) reported() (found verdict, current bool) {
	for _, e := range slices.Backward(s.events) {
		if outcome, known := outcomeOf(e.Reason); known {
			return verdict{outcome, e.Message}, s.super != nil && e.Last.After(lastWrite(s.super))
		}
	}
	return verdict{}, false
}

// lastWrite returns when an object was last written other than its status.
func lastWrite(obj *unstructured.Unstructured) time.Time {
	last := obj.GetCreationTimestamp().Time
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// fromSyncer returns the events of the syncer, the newest at the end.
func fromSyncer(all []corev1.Event) []event {
	own := slices.DeleteFunc(slices.Clone(all), func(e corev1.Event) bool {
		return e.Source.Component != syncer && e.ReportingController != syncer
	})
	return lastEvents(own, len(own))
}
