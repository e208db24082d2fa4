package resources

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ResourceClaimTemplate is synced down while a pod refers to it. The super
// cluster creates claims from it for the copies of pods. It is immutable, and
// is recreated if it differs.
func ResourceClaimTemplate() kinds.Flow {
	return kinds.Down[*resourcev1.ResourceClaimTemplate]{
		Name:     "ResourceClaimTemplate",
		Object:   &resourcev1.ResourceClaimTemplate{},
		List:     &resourcev1.ResourceClaimTemplateList{},
		Summary:  "down, while a pod refers to them; the devices up",
		Optional: true,
		OnDemand: true,
		Admit: func(v kinds.View, tenant *resourcev1.ResourceClaimTemplate) error {
			return admitDevices(v, &tenant.Spec.Spec)
		},
		Desired: func(v kinds.View, tenant *resourcev1.ResourceClaimTemplate) (*resourcev1.ResourceClaimTemplate, error) {
			return &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{
				ObjectMeta: v.Tenant.Template("ResourceClaimTemplate", tenant.Spec.ObjectMeta),
				Spec:       *tenant.Spec.Spec.DeepCopy(),
			}}, nil
		},
		Merge: func(_, _ *resourcev1.ResourceClaimTemplate) {},
	}
}
