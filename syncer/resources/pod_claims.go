package resources

import (
	corev1 "k8s.io/api/core/v1"
)

// claimName is the claim that a volume of a pod is; empty if it is none. The claim of an ephemeral volume is made, owned and
// deleted by a controller in the tenant, which gives it this name (Kubernetes documentation: Ephemeral Volumes).
func claimName(pod string, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod + "-" + v.Name
	}
	return ""
}

// useClaims has ephemeral volumes be the claims that are made for them in the tenant, and go down like others: the super cluster
// must not make claims of its own.
func useClaims(pod string, volumes []corev1.Volume) {
	for i := range volumes {
		if v := &volumes[i]; v.Ephemeral != nil {
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(pod, v)}
			v.Ephemeral = nil
		}
	}
}
