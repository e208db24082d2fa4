package projectclaim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestRender(t *testing.T) {
	jane := tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: "jane"}
	staff := tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberGroup, Name: "staff"}
	for name, tc := range map[string]struct {
		spec string
		want tenancyv1alpha1.VirtualClusterSpec
		ok   bool
	}{
		"empty":          {``, tenancyv1alpha1.VirtualClusterSpec{Alias: "shop", Members: []tenancyv1alpha1.Member{jane}}, true},
		"an empty spec":  {`{}`, tenancyv1alpha1.VirtualClusterSpec{Alias: "shop", Members: []tenancyv1alpha1.Member{jane}}, true},
		"fields":         {`{"weight": 3}`, tenancyv1alpha1.VirtualClusterSpec{Alias: "shop", Weight: 3, Members: []tenancyv1alpha1.Member{jane}}, true},
		"another alias":  {`{"alias": "bank"}`, tenancyv1alpha1.VirtualClusterSpec{Alias: "shop", Members: []tenancyv1alpha1.Member{jane}}, true},
		"other members":  {`{"members": [{"kind": "Group", "name": "staff"}]}`, tenancyv1alpha1.VirtualClusterSpec{Alias: "shop", Members: []tenancyv1alpha1.Member{staff, jane}}, true},
		"the requester":  {`{"members": [{"kind": "User", "name": "jane"}]}`, tenancyv1alpha1.VirtualClusterSpec{Alias: "shop", Members: []tenancyv1alpha1.Member{jane}}, true},
		"unknown field":  {`{"wieght": 3}`, tenancyv1alpha1.VirtualClusterSpec{}, false},
		"in capitals":    {`{"Weight": 3}`, tenancyv1alpha1.VirtualClusterSpec{}, false},
		"another type":   {`{"weight": "3"}`, tenancyv1alpha1.VirtualClusterSpec{}, false},
		"not an object":  {`[]`, tenancyv1alpha1.VirtualClusterSpec{}, false},
		"a second value": {`{}{"weight": 3}`, tenancyv1alpha1.VirtualClusterSpec{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			template := &tenancyv1alpha1.ProjectTemplate{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
			template.Spec.Namespace, template.Spec.RequesterClusterRole = "projects", "edit"
			template.Spec.Template.Metadata.Labels = map[string]string{"tier": "small", names.ProjectTemplate: "forged"}
			template.Spec.Template.Metadata.Annotations = map[string]string{"note": "x", names.Requester: "forged"}
			template.Spec.Template.Spec = runtime.RawExtension{Raw: []byte(tc.spec)}
			claim := &tenancyv1alpha1.ProjectClaim{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1"}}
			claim.Spec = tenancyv1alpha1.ProjectClaimSpec{Template: "small", Requester: "jane"}
			vc, err := render(template, claim)
			if (err == nil) != tc.ok {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			want := metav1.ObjectMeta{
				Namespace: "projects", Labels: map[string]string{"tier": "small", names.ProjectTemplate: "small"},
				Annotations: map[string]string{"note": "x", names.Requester: "jane", names.RequesterRole: "edit", names.ProjectClaim: "1"},
			}
			if diff := cmp.Diff(want, vc.ObjectMeta) + cmp.Diff(tc.want, vc.Spec); diff != "" {
				t.Errorf("VirtualCluster (-want +got):\n%s", diff)
			}
			if template.Spec.Template.Metadata.Labels[names.ProjectTemplate] != "forged" {
				t.Error("the template, which is of a cache, was changed")
			}
		})
	}
}
