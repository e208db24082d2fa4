// Package members says who is a member of a tenant, and who a member is inside.
package members

import (
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// List are the members of a tenant.
type List []tenancyv1alpha1.Member

// FromSpec returns the members of a VirtualCluster. One whose control plane is external
// has none, whatever it says: that apiserver does not trust the gateway with users,
// and must not get their tokens.
func FromSpec(vc *tenancyv1alpha1.VirtualCluster) List {
	if vc.Spec.External != nil {
		return nil
	}
	return vc.Spec.Members
}

// Has reports whether a user of the super cluster is a member; nil is none.
func (l List) Has(who user.Info) bool {
	return who != nil && slices.ContainsFunc(l, func(m tenancyv1alpha1.Member) bool {
		if m.Kind == tenancyv1alpha1.MemberGroup {
			return slices.Contains(who.GetGroups(), m.Name)
		}
		return m.Kind == tenancyv1alpha1.MemberUser && m.Name == who.GetName()
	})
}

// Inside returns the user that a member is inside a tenant.
func Inside(who user.Info) user.Info {
	inside := &user.DefaultInfo{Name: names.MemberPrefix + who.GetName()}
	for _, group := range who.GetGroups() {
		inside.Groups = append(inside.Groups, names.MemberPrefix+group)
	}
	return inside
}
