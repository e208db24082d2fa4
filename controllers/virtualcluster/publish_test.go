package virtualcluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestIsPublishedFor(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Secret)
		want   bool
	}{
		"AsWritten":    {func(*corev1.Secret) {}, true},
		"MoreLabels":   {func(s *corev1.Secret) { s.Labels["other"] = "x" }, true},
		"NoLabel":      {func(s *corev1.Secret) { delete(s.Labels, names.VCName) }, false},
		"NoAnnotation": {func(s *corev1.Secret) { s.Annotations = nil }, false},
		"OfAnother":    {func(s *corev1.Secret) { s.Annotations[names.VCUID] = "another" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Labels: names.OwnerLabels(tenant()), Annotations: names.OwnerAnnotations(tenant()),
			}}
			tc.change(secret)
			if got := isPublishedFor(secret, tenant()); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
