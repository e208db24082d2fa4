package quota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
)

// fieldOwner is the field manager of status.quota.
const fieldOwner = client.FieldOwner("vc-syncer-quota")

// maxSummary is the maximum length of the summary, as the API validates it.
const maxSummary = 8192

// updateStatus writes a tenant's usage to the status of its VirtualCluster, if
// it differs, and to the metrics.
func (q *Quota) updateStatus(ctx context.Context, key string) {
	if err := q.writeStatus(ctx, key); err != nil && ctx.Err() == nil {
		q.env.Logger.Error(err, "Cannot write status.quota; retrying", "tenant", key)
		q.changed.put(key)
	}
}

func (q *Quota) writeStatus(ctx context.Context, key string) error {
	t, known := q.tenant(key)
	if !known || t.err != nil {
		return t.err
	}
	if !q.env.Serves(key) {
		q.metrics.forget(key) // another replica updates it
		return nil
	}
	vc := &tenancyv1alpha1.VirtualCluster{}
	if err := q.env.Client.Get(ctx, t.vc, vc); err != nil {
		return client.IgnoreNotFound(err)
	}
	want := q.statusOf(key, t.limits)
	q.metrics.show(key, want)
	if vc.Status.ClusterNamespace != key || equality.Semantic.DeepEqual(vc.Status.Quota, want) {
		return nil
	}
	return vcstatus.ApplyQuota(ctx, q.env.Client, vc, fieldOwner, want)
}

// ClearStatus clears status.quota, for a syncer that does not enforce quotas.
func ClearStatus(ctx context.Context, c client.Client, vc *tenancyv1alpha1.VirtualCluster) error {
	return vcstatus.ApplyQuota(ctx, c, vc, fieldOwner, nil)
}

// statusOf returns a tenant's usage of the limited resources; nil if there are
// no limits.
func (q *Quota) statusOf(key string, l limits) *tenancyv1alpha1.QuotaStatus {
	if l.none() {
		return nil
	}
	used, _ := q.ledger.usedBy(key, "")
	status := &tenancyv1alpha1.QuotaStatus{Hard: l.hard, Used: only(used, l.hard)}
	lines := summary("", status.Used, l.hard)
	for _, class := range slices.Sorted(maps.Keys(l.byClass)) {
		hard := l.byClass[class]
		_, ofClass := q.ledger.usedBy(key, class)
		has := tenancyv1alpha1.PriorityClassUsage{Name: class, Hard: hard, Used: only(ofClass, hard)}
		status.PriorityClasses = append(status.PriorityClasses, has)
		lines = append(lines, summary(class+" ", has.Used, hard)...)
	}
	status.Summary = strings.Join(lines, ", ")
	if len(status.Summary) > maxSummary {
		status.Summary = strings.ToValidUTF8(status.Summary[:maxSummary-len("…")], "") + "…"
	}
	return status
}

// summary returns a text with used and hard for each resource.
func summary(of string, used, hard corev1.ResourceList) []string {
	lines := make([]string, 0, len(hard))
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		has, most := used[name], hard[name]
		lines = append(lines, fmt.Sprintf("%s%s %s/%s", of, name, &has, &most))
	}
	return lines
}
