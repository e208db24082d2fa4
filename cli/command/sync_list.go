package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// mostReported bounds the objects that are checked, each with two reads.
const mostReported = 100

// pendingObject is an object that is not synced.
type pendingObject struct {
	Object string      `json:"object"`
	Since  metav1.Time `json:"since"`
	verdict
}

// pendingReport is what sync prints of a tenant.
type pendingReport struct {
	Syncing string          `json:"syncing"`
	Synced  string          `json:"synced"`
	Pending []pendingObject `json:"pending"`
	// More is set if more objects were reported than were checked.
	More bool `json:"more,omitempty"`
}

// list prints the pending objects of a tenant.
func (o *syncOptions) list(ctx context.Context, t *tenant) error {
	report := pendingReport{
		Syncing: conditionText(t.vc, tenancyv1alpha1.ConditionSyncing),
		Synced:  conditionText(t.vc, tenancyv1alpha1.ConditionSynced),
		Pending: []pendingObject{},
	}
	events := &corev1.EventList{}
	selected := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("source", syncer)}
	if err := t.objects.List(ctx, events, selected); err != nil {
		return fmt.Errorf("list the events of the syncer in the tenant: %w", err)
	}
	reported := newestReports(events.Items)
	report.More = len(reported) > mostReported
	for _, e := range reported[:min(len(reported), mostReported)] {
		found, err := t.pending(ctx, e)
		if err != nil {
			return err
		}
		if found != nil {
			report.Pending = append(report.Pending, *found)
		}
	}
	if *o.print.OutputFormat != "" {
		if err := printReport(o.print, o.platform, "PendingObjects", &report); err != nil {
			return err
		}
	} else {
		report.write(o.Out, t.key, time.Now())
	}
	if len(report.Pending) > 0 || !meta.IsStatusConditionTrue(t.vc.Status.Conditions, tenancyv1alpha1.ConditionSyncing) {
		return &exit.Error{Code: exit.NotSynced}
	}
	return nil
}

// conditionText returns a condition in one line.
func conditionText(vc *tenancyv1alpha1.VirtualCluster, kind string) string {
	c := meta.FindStatusCondition(vc.Status.Conditions, kind)
	if c == nil {
		return kind + "=Unknown"
	}
	return describeCondition(*c)
}

// newestReports returns the newest event of each object that reports that the
// object is not synced, the newest first.
func newestReports(events []corev1.Event) []corev1.Event {
	newest := map[types.UID]corev1.Event{}
	for i := range events {
		e := events[i]
		if _, known := outcomeOf(e.Reason); !known {
			continue
		}
		if was, seen := newest[e.InvolvedObject.UID]; !seen || eventOf(&was).Last.Time.Before(eventOf(&e).Last.Time) {
			newest[e.InvolvedObject.UID] = e
		}
	}
	sorted := make([]corev1.Event, 0, len(newest))
	for _, e := range newest {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(a, b corev1.Event) int {
		return eventOf(&b).Last.Compare(eventOf(&a).Last.Time)
	})
	return sorted
}

// pending checks whether the object of an event is still not synced; nil if it
// is synced or gone.
func (t *tenant) pending(ctx context.Context, e corev1.Event) (*pendingObject, error) {
	about := e.InvolvedObject
	scope := meta.RESTScopeNamespace
	if about.Namespace == "" {
		scope = meta.RESTScopeRoot
	}
	mapping := &meta.RESTMapping{GroupVersionKind: schema.FromAPIVersionAndKind(about.APIVersion, about.Kind), Scope: scope}
	found, err := t.sides(ctx, mapping, about.Namespace, about.Name)
	if err != nil {
		return nil, err
	}
	if found.tenant == nil || found.tenant.GetUID() != about.UID {
		return nil, nil
	}
	v := found.verdict(t.vc)
	if v.synced() {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: about.Namespace, Name: about.Name}
	return &pendingObject{Object: about.Kind + " " + key.String(), Since: e.FirstTimestamp, verdict: v}, nil
}
