package command

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
)

// write writes the description for people.
func (d *description) write(out io.Writer, now time.Time) error {
	w := printers.GetNewTabWriter(out)
	vc := d.VirtualCluster
	for _, line := range [][2]string{
		{"Name", vc.Name},
		{"Namespace", vc.Namespace},
		{"Created", age(vc.CreationTimestamp, now) + " ago"},
		{"Provisioner", cmp.Or(string(vc.Status.Provisioner), string(vc.Spec.Provisioner), "default of vc-manager")},
		{"Phase", or(string(vc.Status.Phase))},
		{"Version", or(vc.Status.Version)},
		{"Endpoint", or(vc.Status.Endpoint)},
		{"Root namespace", or(vc.Status.ClusterNamespace)},
	} {
		printf(w, "%s:\t%s\n", line[0], terminal.Line(line[1]))
	}
	if vc.Status.WakeTime != nil {
		printf(w, "Wakes at:\t%s\n", vc.Status.WakeTime.UTC().Format(time.RFC3339))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	writeConditions(out, vc.Status.Conditions, now)
	printf(out, "Pending objects:\n  %s\n", terminal.Line(pendingObjects(vc)))
	d.Usage.write(out, vc.Status.Quota)
	writeEvents(out, d.Events, now)
	return nil
}

func writeConditions(out io.Writer, conditions []metav1.Condition, now time.Time) {
	sayf(out, "Conditions:")
	w := printers.GetNewTabWriter(out)
	printf(w, "  TYPE\tSTATUS\tREASON\tSINCE\tMESSAGE\n")
	for _, c := range conditions {
		printf(w, "  %s\t%s\t%s\t%s\t%s\n", c.Type, c.Status, terminal.Line(c.Reason), age(c.LastTransitionTime, now), terminal.Line(c.Message))
	}
	_ = w.Flush() // an error of out is that of the next write, too
}

// pendingObjects returns what the syncer reports about objects that are not
// synced.
func pendingObjects(vc *tenancyv1alpha1.VirtualCluster) string {
	synced := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionSynced)
	switch {
	case synced == nil, synced.Status == metav1.ConditionUnknown:
		return "unknown: the syncer does not sync this tenant at present"
	case synced.Status == metav1.ConditionTrue:
		return none
	}
	return synced.Message + fmt.Sprintf("; all: kubectl vc sync %s -n %s", vc.Name, vc.Namespace)
}

// write writes the usage, and the quota with what is used of it.
func (u usage) write(out io.Writer, quota *tenancyv1alpha1.QuotaStatus) {
	sayf(out, "Usage:")
	w := printers.GetNewTabWriter(out)
	printf(w, "  namespaces\t%d\n", u.Namespaces)
	pods := none
	if len(u.Pods) > 0 {
		parts := make([]string, 0, len(u.Pods))
		for _, phase := range slices.Sorted(maps.Keys(u.Pods)) {
			parts = append(parts, fmt.Sprintf("%d %s", u.Pods[phase], phase))
		}
		pods = strings.Join(parts, ", ")
	}
	printf(w, "  pods\t%s\n", pods)
	for _, name := range slices.Sorted(maps.Keys(u.Requests)) {
		quantity := u.Requests[name]
		printf(w, "  requests.%s\t%s\n", name, quantity.String())
	}
	if quota != nil {
		writeQuota(w, quota.Used, quota.Hard)
	}
	_ = w.Flush() // an error of out is that of the next write, too
}

func writeQuota(w io.Writer, used, hard corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		has, most := used[name], hard[name]
		printf(w, "  quota %s\t%s of %s\n", name, has.String(), most.String())
	}
}

func writeEvents(out io.Writer, events []event, now time.Time) {
	if len(events) == 0 {
		sayf(out, "Events: %s", none)
		return
	}
	sayf(out, "Events:")
	w := printers.GetNewTabWriter(out)
	printf(w, "  LAST\tTYPE\tREASON\tMESSAGE\n")
	for _, e := range events {
		printf(w, "  %s\t%s\t%s\t%s\n", age(e.Last, now), terminal.Line(e.Type), terminal.Line(e.Reason), terminal.Line(e.Message))
	}
	_ = w.Flush() // an error of out is that of the next write, too
}
