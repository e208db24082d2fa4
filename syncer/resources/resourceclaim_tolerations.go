package resources

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// admitDeviceTolerations rejects a request with tolerations of taints that the
// policy does not allow: taints reserve devices for others, or take them out of
// use.
func admitDeviceTolerations(policy tenancyv1alpha1.TenantPolicy, request string, of []resourcev1.DeviceToleration) error {
	if policy.AllowSystemTolerations {
		return nil
	}
	for _, t := range of {
		taint := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value}
		covers := func(pattern string) bool { return coversToleration(pattern, taint) }
		if t.Key == "" || !slices.ContainsFunc(policy.AllowTolerations, covers) {
			return fmt.Errorf("request %s: a toleration of %q is not allowed, since taints keep devices for others", request, t.Key)
		}
	}
	return nil
}
