package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

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
		ObjectMeta: metav1.ObjectMeta{
			Labels:      labels.Merge(blue.Project(), labels.Set{"app": "web"}),
			Annotations: map[string]string{"note": "x"},
		},
		Spec: asking("fast"),
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
	byDefault := metav1.ObjectMeta{Labels: blue.Project()}
	if diff := cmp.Diff(byDefault, down(t, k, tenant).Spec.ObjectMeta, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the template's metadata by default (-want +got):\n%s", diff)
	}
}
