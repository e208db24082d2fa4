package members

import (
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestHas(t *testing.T) {
	list := List{
		{Kind: tenancyv1alpha1.MemberUser, Name: "jane"}, {Kind: tenancyv1alpha1.MemberGroup, Name: "developers"},
		{Kind: "ServiceAccount", Name: "build"},
	}
	for name, c := range map[string]struct {
		who  user.Info
		want bool
	}{
		"user":                       {&user.DefaultInfo{Name: "jane"}, true},
		"of a group":                 {&user.DefaultInfo{Name: "joe", Groups: []string{"all", "developers"}}, true},
		"another":                    {&user.DefaultInfo{Name: "joe", Groups: []string{"all"}}, false},
		"user with a group's name":   {&user.DefaultInfo{Name: "developers"}, false},
		"of a group, a user's name":  {&user.DefaultInfo{Name: "joe", Groups: []string{"jane"}}, false},
		"of another kind":            {&user.DefaultInfo{Name: "build", Groups: []string{"build"}}, false},
		"spelled in another way":     {&user.DefaultInfo{Name: "Jane"}, false},
		"without a name and a group": {&user.DefaultInfo{}, false},
		"not known":                  {nil, false},
	} {
		if got := list.Has(c.who); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestInside: a member has no name inside that Kubernetes gives a meaning.
func TestInside(t *testing.T) {
	got := Inside(&user.DefaultInfo{
		Name: "system:admin", UID: "1", Groups: []string{"system:masters", "developers"}, Extra: map[string][]string{"scopes": {"all"}},
	})
	if got.GetName() != "member:system:admin" || !slices.Equal(got.GetGroups(), []string{"member:system:masters", "member:developers"}) ||
		got.GetUID() != "" || len(got.GetExtra()) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestFromSpec: an external control plane has no members, also if an older object
// lists some.
func TestFromSpec(t *testing.T) {
	jane := &user.DefaultInfo{Name: "jane"}
	vc := &tenancyv1alpha1.VirtualCluster{}
	vc.Spec.Members = []tenancyv1alpha1.Member{{Kind: tenancyv1alpha1.MemberUser, Name: "jane"}}
	if !FromSpec(vc).Has(jane) {
		t.Error("a member is none")
	}
	vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: "red"}
	if FromSpec(vc).Has(jane) {
		t.Error("an external control plane has members")
	}
}
