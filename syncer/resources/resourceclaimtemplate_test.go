package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestResourceClaimTemplateGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*resourcev1.ResourceClaimTemplate]](t, ResourceClaimTemplate())
	if !k.OnDemand {
		t.Error("templates are synced down without a pod")
	}
	tenant := &resourcev1.ResourceClaimTemplate{ObjectMeta: meta("gpu"), Spec: resourcev1.ResourceClaimTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "web", "tenancy.x-k8s.io/vcname": "green"},
			Annotations: map[string]string{"note": "x", "tenancy.x-k8s.io/cluster": "team-000000-green"},
		},
		Spec: asking("fast"),
	}}
	got, err := k.Desired(allowing("ResourceClaimTemplate", []string{"app"}, []string{"note"}), tenant)
	want := &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"}},
		Spec:       asking("fast"),
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
	if got := down(t, k, tenant); len(got.Spec.Labels)+len(got.Spec.Annotations) > 0 {
		t.Errorf("by default the template has the metadata %v", got.Spec.ObjectMeta)
	}
}
