package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPodTokens(t *testing.T) {
	token := func(audience string, seconds *int64) corev1.VolumeProjection {
		return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: audience, ExpirationSeconds: seconds, Path: "token",
		}}
	}
	secret := corev1.VolumeProjection{Secret: &corev1.SecretProjection{}}
	tests := map[string]struct {
		change func(*corev1.PodSpec)
		want   kinds.Tokens
	}{
		"none": {func(s *corev1.PodSpec) { s.NodeName = "node-1" }, kinds.Tokens{ServiceAccount: "default"}},
		"before the pod has a node": {
			func(s *corev1.PodSpec) {
				s.Volumes = volumes(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{token("", nil)}}})
			},
			kinds.Tokens{ServiceAccount: "default"},
		},
		"for the apiserver and for another audience": {
			func(s *corev1.PodSpec) {
				s.NodeName, s.ServiceAccountName = "node-1", "robot"
				s.Volumes = volumes(
					corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{secret, token("", nil)}}},
					corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}},
					corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{token("vault", new(int64(600)))}}},
				)
			},
			kinds.Tokens{ServiceAccount: "robot", Wanted: map[string]kinds.Token{
				"a.1": {}, "c.0": {Audience: "vault", ExpirationSeconds: new(int64(600))},
			}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := podTokens(tenantPod(func(p *corev1.Pod) { tt.change(&p.Spec) }))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
		})
	}
}
