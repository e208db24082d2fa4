package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func withVolumes(volumes ...corev1.Volume) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Volumes = volumes }
}

func claimVolumeOf(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// TestPodsUseClaims checks that the copy of a pod uses the tenant's claim, for
// both types of volumes.
func TestPodsUseClaims(t *testing.T) {
	scratch := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimOf("fast").Spec},
	}}}
	empty := corev1.Volume{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	pod := tenantPod(withVolumes(claimVolumeOf("data", "mine"), scratch, empty))

	super := down(t, kindOf[kinds.Down[*corev1.Pod]](t, Pod()), pod)
	want := []corev1.Volume{claimVolumeOf("data", "mine"), claimVolumeOf("scratch", "web-scratch"), empty}
	if diff := cmp.Diff(want, super.Spec.Volumes); diff != "" {
		t.Errorf("volumes of the copy (-want +got):\n%s", diff)
	}

	var claims []kinds.Reference
	for _, ref := range podReferences(pod) {
		if ref.Kind == "PersistentVolumeClaim" {
			claims = append(claims, ref)
		}
	}
	wantRefs := []kinds.Reference{
		{Kind: "PersistentVolumeClaim", Name: "mine"}, {Kind: "PersistentVolumeClaim", Name: "web-scratch"},
	}
	if diff := cmp.Diff(wantRefs, claims); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}
