package resources

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

// ServiceAccount flows down as a name that pods can run under. It has no rights in the super cluster and its token is never
// mounted: a tenant's pod talks to the tenant's apiserver. The one that the super cluster makes in every namespace is adopted.
func ServiceAccount() engine.Kind {
	return engine.Down[*corev1.ServiceAccount]{
		Name:   "ServiceAccount",
		Object: &corev1.ServiceAccount{},
		List:   &corev1.ServiceAccountList{},
		Adopt:  true,
		Desired: func(engine.View, *corev1.ServiceAccount) (*corev1.ServiceAccount, error) {
			return &corev1.ServiceAccount{AutomountServiceAccountToken: new(false)}, nil
		},
		Merge: func(super, desired *corev1.ServiceAccount) {
			super.AutomountServiceAccountToken = desired.AutomountServiceAccountToken
		},
	}
}
