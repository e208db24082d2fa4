package fence_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtualcluster/virtualcluster/config/converted"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// TestRole: the role permits the kinds and subresources that the gateway serves,
// and no others.
func TestRole(t *testing.T) {
	objects, err := converted.Read()
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	for _, object := range objects {
		if object.GetKind() == "ClusterRole" && object.GetName() == names.ConvertedRole {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got, want []string
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			got = append(got, rule.APIGroups[0]+"/"+resource)
		}
	}
	for _, kind := range kinds.All() {
		// The gateway itself writes CRDs, and reads what is shown.
		if !kind.Served() || kind.Class == kinds.Answered || kind.Class == kinds.Shown || kind.Stored.InRoot || kind.IsCRD() {
			continue
		}
		want = append(want, kind.StoredAs("").Group+"/"+kind.Resource)
		for name, subresource := range kind.Subresources {
			if subresource.Form != "" {
				want = append(want, kind.Group+"/"+kind.Resource+"/"+name)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the resources of the role (-served +permitted):\n%s", diff)
	}
}
