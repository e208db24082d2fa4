package resources

import (
	corev1 "k8s.io/api/core/v1"
)

// claimName returns the name of the claim of a pod's volume; empty if it has
// none. The claim of an ephemeral volume is created, owned and deleted by a
// controller in the tenant, with this name (Kubernetes documentation: Ephemeral
// Volumes).
func claimName(pod string, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod + "-" + v.Name
	}
	return ""
}

// useClaims replaces ephemeral volumes by the claims that exist for them in the
// tenant, and that are synced down like others: the super cluster must not
// create claims of its own.
func useClaims(pod string, volumes []corev1.Volume) {
	for i := range volumes {
		if v := &volumes[i]; v.Ephemeral != nil {
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(pod, v)}
			v.Ephemeral = nil
		}
	}
}
