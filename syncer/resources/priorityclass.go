package resources

import (
	"strings"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// PriorityClass is synced up to the tenants whose pods may use it. It never
// becomes the default in the tenant: the super cluster sets its default on pods
// without a class anyway, and an apiserver accepts only one default, which may
// be the tenant's own. Every cluster has the system's classes itself.
func PriorityClass() kinds.Flow {
	k := class("PriorityClass", &schedulingv1.PriorityClass{}, &schedulingv1.PriorityClassList{},
		func(to, from *schedulingv1.PriorityClass) {
			own := from.DeepCopy()
			to.Value, to.PreemptionPolicy, to.Description = own.Value, own.PreemptionPolicy, own.Description
			to.GlobalDefault = false
		},
		func(a, b *schedulingv1.PriorityClass) bool {
			return a.Value != b.Value || !semanticEqual(a.PreemptionPolicy, b.PreemptionPolicy)
		},
	)
	shown := k.Desired
	k.Desired = func(v kinds.View, super *schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
		if strings.HasPrefix(super.Name, "system-") {
			return nil
		}
		return shown(v, super)
	}
	return k
}
