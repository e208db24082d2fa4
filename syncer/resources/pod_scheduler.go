package resources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// admitScheduler rejects pods with a scheduler of the super cluster that the
// policy does not allow: it may place pods on nodes that the default scheduler
// would not.
func admitScheduler(policy tenancyv1alpha1.TenantPolicy, spec *corev1.PodSpec) error {
	name := spec.SchedulerName
	if name == "" || name == corev1.DefaultSchedulerName || slices.Contains(policy.AllowSchedulers, name) {
		return nil
	}
	supported := append([]string{corev1.DefaultSchedulerName}, policy.AllowSchedulers...)
	return field.NotSupported(specPath.Child("schedulerName"), name, supported)
}
